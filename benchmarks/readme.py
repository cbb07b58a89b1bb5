"""Puts the committed results between the README's marks: `python -m benchmarks.readme`."""

import re
from pathlib import Path

README = Path(__file__).parent.parent / "README.md"
FOLDER = Path(__file__).parent
BLOCK = re.compile(r"<!-- (results/\w+\.md) -->\n.*?<!-- end -->", re.DOTALL)


def filled(text: str) -> str:
    """The text with every block replaced by the results file that it names."""
    return BLOCK.sub(
        lambda block: f"<!-- {block[1]} -->\n{(FOLDER / block[1]).read_text()}<!-- end -->", text
    )


if __name__ == "__main__":
    README.write_text(filled(README.read_text()))
