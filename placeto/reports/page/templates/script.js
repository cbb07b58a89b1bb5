"use strict";
(() => {
  const hover = JSON.parse(document.getElementById("hover").textContent);
  const tip = document.getElementById("tip");
  const figures = [...document.querySelectorAll("[data-zoom]")];
  if (figures.length === 0) return;
  const units = Number(figures[0].dataset.zoom);
  const step = Number(figures[0].dataset.step);
  const LEAST = units / 500;
  let from = 0;
  let to = units;

  const say = (text, event) => {
    tip.hidden = !text;
    if (!text) return;
    tip.textContent = text;
    const box = tip.getBoundingClientRect();
    const left = Math.min(event.clientX + 14, innerWidth - box.width - 6);
    const below = event.clientY + 16;
    const above = event.clientY - box.height - 10;
    tip.style.left = `${Math.max(left, 6)}px`;
    tip.style.top = `${below + box.height > innerHeight ? above : below}px`;
  };

  const time = (seconds) => {
    const unit = [["s", 1], ["ms", 1e-3], ["us", 1e-6], ["ns", 1e-9]].find(([, scale]) => seconds >= scale);
    return unit ? `${Number((seconds / unit[1]).toPrecision(5))} ${unit[0]}` : "0 s";
  };

  const label = (ticks) => {
    const width = ((to - from) / units) * step;
    const power = 10 ** Math.floor(Math.log10(width / 6));
    const every = [1, 2, 2.5, 5, 10].map((n) => n * power).find((n) => n >= width / 6);
    const begin = (from / units) * step;
    const spans = [];
    for (let n = Math.ceil(begin / every - 1e-9); n * every <= begin + width * (1 + 1e-9); n += 1) {
      const span = document.createElement("span");
      span.textContent = time(n * every);
      span.style.left = `${(100 * (n * every - begin)) / width}%`;
      if (n * every - begin > 0.96 * width) span.className = "end";
      spans.push(span);
    }
    ticks.replaceChildren(...spans);
  };

  const show = (a, b) => {
    const width = Math.min(Math.max(b - a, LEAST), units);
    from = Math.min(Math.max((a + b - width) / 2, 0), units - width);
    to = from + width;
    for (const figure of figures) {
      for (const svg of figure.querySelectorAll(".plot svg")) svg.setAttribute("viewBox", `${from} 0 ${width} 1`);
      for (const numbers of figure.querySelectorAll(".numbers div")) {
        numbers.style.width = `${(100 * units) / width}%`;
        numbers.style.left = `${(-100 * from) / width}%`;
      }
      figure.querySelectorAll(".ticks").forEach(label);
      // Without a mouse there is nothing to drag with.
      for (const button of figure.querySelectorAll("[data-do=earlier], [data-do=later]")) button.hidden = width === units;
    }
  };

  const zoom = (factor, middle = (from + to) / 2) => show(middle - (middle - from) * factor, middle + (to - middle) * factor);

  const at = (plot, event) => {
    const box = plot.getBoundingClientRect();
    const share = Math.min(Math.max((event.clientX - box.left) / box.width, 0), 1);
    return [share, from + share * (to - from)];
  };

  const found = (plot, unit) => {
    if (!plot.dataset.hover) return "";
    const [kind, number] = plot.dataset.hover.split(" ");
    const now = (unit / units) * step * 1e9;
    const near = ((to - from) / units) * step * 1e9 * 0.002;
    const spans = hover[kind][Number(number)];
    const within = (reach) => spans.find(([begin, end]) => begin - reach <= now && now <= end + reach);
    const span = within(0) ?? within(near);
    return span ? `${span[2]}\nat ${time(span[0] / 1e9)}` : "";
  };

  const move = (share) => show(from + share * (to - from), to + share * (to - from));
  const actions = { in: () => zoom(0.5), out: () => zoom(2), all: () => show(0, units), earlier: () => move(-0.5), later: () => move(0.5) };
  for (const figure of figures) {
    for (const button of figure.querySelectorAll("[data-do]")) button.addEventListener("click", actions[button.dataset.do]);
    for (const plot of figure.querySelectorAll(".plot")) {
      let begun = null;
      const selection = document.createElement("div");
      selection.className = "selection";
      plot.addEventListener("pointerdown", (event) => {
        if (event.pointerType !== "mouse" || event.button !== 0) return;
        begun = at(plot, event);
        plot.setPointerCapture(event.pointerId);
        event.preventDefault();
      });
      plot.addEventListener("pointermove", (event) => {
        const [share, unit] = at(plot, event);
        say(found(plot, unit), event);
        if (begun === null) return;
        plot.append(selection);
        selection.style.left = `${100 * Math.min(share, begun[0])}%`;
        selection.style.width = `${100 * Math.abs(share - begun[0])}%`;
      });
      plot.addEventListener("pointerup", (event) => {
        if (begun === null) return;
        const [share, unit] = at(plot, event);
        if (Math.abs(share - begun[0]) > 0.01) show(Math.min(unit, begun[1]), Math.max(unit, begun[1]));
        begun = null;
        selection.remove();
      });
      plot.addEventListener("pointercancel", () => { begun = null; selection.remove(); });
      plot.addEventListener("pointerleave", () => say(""));
      plot.addEventListener("dblclick", actions.all);
      plot.addEventListener("wheel", (event) => {
        if (!event.ctrlKey && !event.metaKey) return;
        event.preventDefault();
        zoom(event.deltaY < 0 ? 0.8 : 1.25, at(plot, event)[1]);
      }, { passive: false });
    }
  }

  const graph = document.querySelector(".graph");
  const circles = [...graph.querySelectorAll("circle")];
  const lines = [...graph.querySelectorAll("line")];
  const forget = () => {
    graph.classList.remove("some");
    graph.querySelectorAll(".near").forEach((shape) => shape.classList.remove("near"));
    say("");
  };
  const point = (number, event) => {
    forget();
    graph.classList.add("some");
    circles[number].classList.add("near");
    for (const line of lines) {
      const ends = [Number(line.dataset.a), Number(line.dataset.b)];
      if (!ends.includes(number)) continue;
      line.classList.add("near");
      ends.forEach((end) => circles[end].classList.add("near"));
    }
    say(circles[number].dataset.title, event);
  };
  circles.forEach((circle, number) => {
    // The browser's own tip would cover this one; without scripts it is all there is.
    circle.dataset.title = circle.querySelector("title").textContent;
    circle.querySelector("title").remove();
    circle.addEventListener("pointerenter", (event) => point(number, event));
    circle.addEventListener("pointerleave", forget);
  });
})();
