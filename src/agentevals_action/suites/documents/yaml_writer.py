"""Writes data as YAML that is read in a diff: one value per line, texts of several lines as blocks,
keys in the order of the data."""

import math
import re
from typing import Any

import yaml

#: Ends of lines that a reader of YAML may replace by a line feed.
_OTHER_BREAKS = re.compile("[\r\x85\u2028\u2029]")


class _Dumper(yaml.SafeDumper):
    """Writes equal values twice, not as an anchor and an alias."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002  # of the base class
        return True

    def represent_text(self, text: str) -> yaml.ScalarNode:
        """A block if the text has several lines. Quotes unless it begins with a letter: YAML 1.2
        reads `1e3` and `0o17` as numbers, for which PyYAML knows no quotes."""
        is_block = "\n" in text and not text[0].isspace()
        style = "|" if is_block else None if text[:1].isalpha() else '"'
        style = '"' if _OTHER_BREAKS.search(text) else style
        return self.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _Dumper.represent_text)


def write_yaml(data: Any, *, in_ascii: bool = False) -> str:
    """JSON data, and dates, as a YAML document, which `read_yaml` reads as the same data. In ASCII,
    every other character is escaped: none is lost where texts are made visible."""
    return yaml.dump(
        data,
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=not in_ascii,
        default_flow_style=False,
        width=math.inf,
    )
