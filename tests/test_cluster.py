import copy
import math
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from placeto import (
    Channel,
    Cluster,
    Device,
    EndCost,
    Link,
    PlacetoError,
    load_cluster,
    save_cluster,
)
from placeto.cluster import from_document, to_document
from placeto.support.bundle import names
from placeto.support.launch import Launch
from tests.strategies import clusters, clusters_of_links, examples

PRESETS = names("clusters", (".yaml",))

VALID = """
name: two-gpus
devices:
  - {name: gpu0, kind: k80, memory: 12GiB, launch_overhead: 5.7us, tensorflow: "/device:GPU:0"}
  - {name: gpu1, kind: k40, memory: 11000}
channels:
  - {name: out0, from: [gpu0], to: [gpu1], bandwidth: 7.6GB/s, overhead: 25us, multicast: true}
  - {name: out1, from: [gpu1], to: [gpu0], bandwidth: 7.6GB/s, latency: 1us}
"""
LINKED = """
name: two-hosts
devices:
  - {name: a, kind: k80, memory: 1GiB}
  - {name: b, kind: k80, memory: 1GiB}
links:
  - {name: out-a, bandwidth: 1.2GB/s, latency: 20us}
  - {name: switch, bandwidth: 10GB/s, latency: 0.5us}
  - {name: out-b, bandwidth: 1GB/s}
channels:
  - name: there
    from: [a]
    to: [b]
    path: [out-a, switch]
    send: [{from: 0B, seconds: 40us}, {from: 64KiB, seconds: 9us, per_byte: 0.47ns}]
  - name: back
    from: [b]
    to: [a]
    bandwidth: 1GB/s
    receive: [{from: 1, per_byte: 0.46ns}]
"""


def changed(path: str, value: Any, text: str = VALID) -> dict[str, Any]:
    document = yaml.safe_load(text)
    *parents, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    table = document
    for key in parents:
        table = table[key]
    if value is ...:
        del table[last]
    else:
        table[last] = value
    return document


def test_fields_by_hand(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(VALID)
    assert load_cluster(tmp_path / "c.yaml") == Cluster(
        "two-gpus",
        (
            Device("gpu0", "k80", 12 * 2**30, 5.7e-6, "/device:GPU:0"),
            Device("gpu1", "k40", 11000, 0.0, None),
        ),
        (
            Channel("out0", ("gpu0",), ("gpu1",), 7.6e9, 0.0, 25e-6, True),
            Channel("out1", ("gpu1",), ("gpu0",), 7.6e9, 1e-6, 0.0, False),
        ),
    )


def test_links_and_ends_by_hand() -> None:
    cluster = from_document(yaml.safe_load(LINKED), "here")
    assert cluster.links == (
        Link("out-a", 1.2e9, 20e-6), Link("switch", 10e9, 0.5e-6), Link("out-b", 1e9)
    )  # fmt: skip
    there, back = cluster.channels
    # The narrowest link's bandwidth, and the latency of both.
    assert (there.bandwidth, there.latency_seconds) == (1.2e9, 20e-6 + 0.5e-6)
    assert there.path == ("out-a", "switch")
    assert there.send == (EndCost(0, 40e-6), EndCost(65536, 9e-6, 0.47e-9))
    assert (there.receive, back.send, back.path) == ((), (), ())
    assert back.receive == (EndCost(1, 0.0, 0.46e-9),)
    assert from_document(yaml.safe_load(yaml.safe_dump(to_document(cluster))), "h") == cluster


@pytest.mark.parametrize("preset", PRESETS)
def test_presets(tmp_path: Path, preset: str) -> None:
    cluster = load_cluster(preset)
    assert cluster.name == preset
    assert len(cluster.source) > 40
    off_diagonal = ~np.eye(cluster.num_devices, dtype=bool)
    assert (cluster.channel_between[off_diagonal] >= 0).all()
    assert (cluster.channel_between.diagonal() == -1).all()
    save_cluster(cluster, tmp_path / "c.yaml")
    assert load_cluster(tmp_path / "c.yaml") == cluster


def test_preset_names() -> None:
    papers = {
        f"{kind}x{n}{cpu}" for kind in ("k80", "k40") for n in (2, 4, 8) for cpu in ("", "-cpu")
    }
    today = {"p2.8xlarge", "v100x8-nvlink", "a100x8", "h100x8", "a100x2-v100x2-cpu"}
    hosts = {"p3.8xlarge-2", "n1-p100x2-4"}
    assert papers | today | hosts <= set(PRESETS)
    for name in papers:
        kind, _, rest = name.partition("x")
        devices = [device.kind for device in load_cluster(name).devices]
        assert devices == [kind] * int(rest[0]) + ["cpu"] * rest.endswith("-cpu")


@pytest.mark.parametrize(("preset", "hosts"), [("p3.8xlarge-2", "ab"), ("n1-p100x2-4", "abcd")])
def test_a_host_has_one_way_out_and_one_in(preset: str, hosts: str) -> None:
    cluster = load_cluster(preset)
    assert sorted({device.name[0] for device in cluster.devices}) == list(hosts)
    for device in cluster.devices:
        assert f"task:{hosts.index(device.name[0])}/" in str(device.tensorflow)
    for pair in permutations(range(cluster.num_devices), 2):
        source, to = (cluster.devices[device].name[0] for device in pair)
        channel = cluster.channels[cluster.channel_between[pair]]
        shared = [link for link in channel.path if link.startswith("nic")]
        assert shared == ([f"nic-out-{source}", f"nic-in-{to}"] if source != to else [])
        if "pcie" in "".join(channel.path):
            source, to = (cluster.devices[device].name for device in pair)
            assert (channel.path[0], channel.path[-1]) == (f"pcie-out-{source}", f"pcie-in-{to}")


@example(Cluster("alone", (Device("a", "k", 1),), (Channel("idle", (), (), 1.0),)))
@given(clusters() | clusters_of_links())
def test_there_and_back(cluster: Cluster) -> None:
    text = yaml.safe_dump(to_document(cluster), sort_keys=False)
    assert from_document(yaml.safe_load(text), "here") == cluster


def linked(path: str, value: Any) -> dict[str, Any]:
    return changed(path, value, LINKED)


CHANNEL = {"name": "more", "from": ["gpu0"], "to": ["gpu1"], "bandwidth": "1GB/s"}


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (changed("channels", []), "no channel leads from 'gpu0' to 'gpu1'; every ordered pair nee"),
        (changed("channels.1", CHANNEL),
         "both 'out0' and 'more' lead from 'gpu0' to 'gpu1'; every ordered pair needs exactly"),
        (changed("channels.0.to", ["gpu7"]),
         "channel 'out0': there is no device 'gpu7'; devices: gpu0, gpu1"),
        (changed("channels.0.bandwidth", "7GB"), "channels[0]: bandwidth is '7GB', expected byt"),
        (changed("channels.0.bandwidth", 0), "channel 'out0': bandwidth is 0.0, expected a finite"),
        (changed("channels.0.latency", math.inf), "latency_seconds is inf, expected a finite num"),
        (changed("channels.0.name", "out1"), "channel name 'out1' stands twice; names must be uni"),
        (changed("channels.0.speed", 1), "channels[0]: unknown key 'speed'; known: name, from, to"),
        (changed("channels.0.bandwidth", ...),
         "channel 'out0': bandwidth is 0.0, expected a finite number of bytes a second above 0 or "
         "a path of links"),
        (changed("channels.0.send", [{"from": 0, "seconds": 1}]),
         "channel 'out0': send: a multicast channel costs its ends nothing"),
        (changed("channels.1.path", ["nic"]),
         "channel 'out1': path: there is no link 'nic'; links: none"),
        (changed("devices", []), "has no devices"),
        (changed("devices", {"gpu0": 1}), "devices: expected a list, found an object"),
        (changed("devices.0.memory", -5), "devices[0]: memory is -5, expected bytes such as"),
        (changed("devices.0.memory", 10**400), "devices[0]: memory is 1000"),
        (changed("devices.0.name", "gpu1"), "device name 'gpu1' stands twice; names must be"),
        (changed("devices.0.kind", 80), "devices[0].kind: expected a string, found a whole num"),
        (changed("devices.0.cores", 0), "devices[0].cores: expected a whole number >= 1"),
        (changed("speed", 1), "unknown key 'speed'; known: name, devices, links, channels, source"),
        (linked("links.0.name", "switch"), "link name 'switch' stands twice; names must be unique"),
        (linked("links.0.bandwidth", 0), "link 'out-a': bandwidth is 0.0, expected a finite numb"),
        (linked("links.0.latency", math.inf), "link 'out-a': latency_seconds is inf, expected a"),
        (linked("links.0.latency", "1GB"), "links[0]: latency is '1GB', expected seconds such as"),
        (linked("links.0.overhead", 1), "links[0]: unknown key 'overhead'; known: name, bandwidth"),
        (linked("channels.0.path", ["out-a", "nic"]),
         "channel 'there': path: there is no link 'nic'; links: out-a, switch, out-b"),
        (linked("channels.0.path", ["switch", "switch"]),
         "channel 'there': path: link name 'switch' stands twice"),
        (linked("channels.0.path", "out-a"), "channels[0].path: expected a list, found a string"),
        (linked("channels.0.bandwidth", "2GB/s"),
         "channel 'there': has a path and figures of its own; expected none of these, or its lin"),
        (linked("channels.0.overhead", "2us"), "channel 'there': has a path and figures of"),
        (linked("channels.0.send.1.from", "0B"),
         "channel 'there': send: sizes go from 0 to 0 bytes, expected ascending ones"),
        (linked("channels.0.send.0.from", "1MiB"),
         "channel 'there': send: sizes go from 1.04858e+06 to 65536 bytes, expected ascending"),
        (linked("channels.0.send.0.from", "64us"), "channels[0]: send[0]: from is '64us', expect"),
        (linked("channels.0.send.0.from", ...), "channels[0].send[0]: key 'from' is missing"),
        (linked("channels.1.receive.0.per_byte", "1GB/s"),
         "channels[1]: receive[0]: per_byte is '1GB/s', expected seconds such as 1.5 with a unit"),
        (linked("channels.1.receive.0.seconds", -1),
         "channels[1]: receive[0]: seconds is -1, expected seconds such as"),
        (linked("channels.1.receive.0.seconds", math.inf),
         "channel 'back': receive: seconds is inf, expected a finite number from 0"),
    ],
)  # fmt: skip
def test_invalid_files(tmp_path: Path, document: Any, message: str) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(yaml.safe_dump(document))
    with pytest.raises(PlacetoError) as caught:
        load_cluster(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


LAUNCHED = """
name: workers
launch: local
devices:
  - {name: a, kind: cpu, memory: 1GiB, cores: 2, tensorflow: "/job:worker/task:0/device:CPU:0"}
  - {name: b, kind: cpu, memory: 1GiB, tensorflow: "/job:worker/task:1/device:CPU:0"}
channels:
  - {name: all, from: [a, b], to: [a, b], bandwidth: 1GB/s}
"""
ELSEWHERE = {"worker": ["10.0.0.1:2222", "host.example:2223"]}


def launched(launch: Any, **names: str | None) -> dict[str, Any]:
    document = yaml.safe_load(LAUNCHED)
    document["launch"] = launch
    for device in document["devices"]:
        device["tensorflow"] = names.get(device["name"], device["tensorflow"])
    return document


def test_launch_by_hand() -> None:
    cluster = from_document(launched("local"), "here")
    assert cluster.launch == Launch()
    assert [device.cores for device in cluster.devices] == [2, None]
    assert [str(device) for device in cluster.tensorflow_devices()] == [
        "/job:worker/replica:0/task:0/device:CPU:0",
        "/job:worker/replica:0/task:1/device:CPU:0",
    ]
    elsewhere = from_document(launched(ELSEWHERE), "here")
    assert elsewhere.launch == Launch((("worker", ("10.0.0.1:2222", "host.example:2223")),))
    for each in (cluster, elsewhere):
        assert from_document(yaml.safe_load(yaml.safe_dump(to_document(each))), "h") == each


@pytest.mark.parametrize(
    "text",
    ["a: [", "{", "\x00", "a: 2020-13-45", "a: !!int ''", "a: !!float ''", "a: !!timestamp x",
     "a: !!bool x", "a: !!python/object:os.system x", "? [1]\n: 2", "a: " + "9" * 5000,
     "[" * 20_000, "name: a\nname: b", VALID + "name: again\n", "a: {b: 1, b: 2}"],
)  # fmt: skip
def test_not_yaml(tmp_path: Path, text: str) -> None:
    (tmp_path / "c.yaml").write_text(text)
    with pytest.raises(PlacetoError, match="not valid YAML") as caught:
        load_cluster(tmp_path / "c.yaml")
    assert "\n" not in str(caught.value)


def test_shared_channel_serves_every_pair_but_the_diagonal() -> None:
    devices = tuple(Device(name, "k", 1) for name in "abc")
    cluster = Cluster("bus", devices, (Channel("bus", tuple("abc"), tuple("abc"), 1.0),))
    assert cluster.channel_between.tolist() == [[-1, 0, 0], [0, -1, 0], [0, 0, -1]]


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4)


@examples(100)
@given(st.data())
def test_mutated_documents(data: st.DataObject) -> None:
    document = copy.deepcopy(yaml.safe_load(data.draw(st.sampled_from([VALID, LAUNCHED, LINKED]))))
    for _ in range(data.draw(st.integers(1, 3))):
        table: Any = document
        while True:
            keys = list(table) if isinstance(table, dict) else list(range(len(table)))
            key = data.draw(st.sampled_from(keys))
            if not isinstance(table[key], dict | list) or not table[key]:
                break
            if data.draw(st.integers(0, 3)) == 0:
                break
            table = table[key]
        if data.draw(st.booleans()) and len(table) > 1:
            del table[key]
        else:
            table[key] = data.draw(SCALARS | st.lists(SCALARS, max_size=3))
    try:
        cluster = from_document(document, "here")
    except PlacetoError as error:
        assert str(error).startswith("here: ")
        assert "\n" not in str(error)
    else:
        assert from_document(to_document(cluster), "here") == cluster


@examples(100)
@given(text=st.text() | st.sampled_from(PRESETS), cut=st.integers(0, 400))
def test_any_text(tmp_path_factory: pytest.TempPathFactory, text: str, cut: int) -> None:
    path = tmp_path_factory.getbasetemp() / "any.yaml"
    path.write_text(text[:cut] + VALID[cut:], encoding="utf-8", errors="surrogatepass")
    try:
        load_cluster(path)
    except PlacetoError as error:
        assert str(error).startswith(f"{path}: ")
        assert "\n" not in str(error)
