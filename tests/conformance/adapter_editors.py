"""Areas 08_*: the YAML, JSON and TOML editors, and the cases in which ours deliberately gives something safer.

Kargo's `yaml-update` rewrites the rest of a line without looking at what stands there, and leaves bare what its own
reader would not take for a number. Ours changes only the value and quotes what any YAML reader would misread.
"""

from __future__ import annotations

import yaml

from bot.domain.values import Json
from bot.editors.json import update_json
from bot.editors.keys import Update
from bot.editors.keys import split_key as split
from bot.editors.toml import update_toml
from bot.editors.yaml import get_yaml, merge_yaml, quote_scalar, update_yaml

Case = dict[str, Json]

_MISREAD = "written bare, YAML readers would take it for another type, a comment or a syntax error"
_DIGITS = "a whole number keeps its digits: Kargo's passes through a float and gets an exponent"

_IMAGE = """image:
  repository: reg.example/web
  tag: {tag}
  pullPolicy: IfNotPresent
replicas: 2
list:
  - a
  - b
empty: ""
q: 'single'
dq: "double"
"""

DECISIONS: dict[str, str] = {
    "yaml_quote/yaquo-35": _DIGITS,
    "yaml_update/yaupd-117": _DIGITS,
    "yaml_update/yaupd-120": "1e+21 without a point is a string in YAML 1.1; with one it is a float everywhere",
    "yaml_update/yaupd-105": "the comment behind a value belongs to the author and stays",
    "yaml_update/yaupd-84": "dropping the anchor would leave the alias below it without one, a file nobody can read",
    "yaml_merge/yamer-24": "the later value keeps its type; with the earlier one's quotes 2 would become a string",
}
OURS: dict[str, Json] = {
    "yaml_quote/yaquo-35": "1000000",
    "yaml_update/yaupd-117": "a: 1000000\n",
    "yaml_update/yaupd-120": "a: 1.0e+21\n",
    "yaml_update/yaupd-105": "a: 7  # c\n",
    "yaml_update/yaupd-84": 'a: &x "2"\nb: *x\n',
    "yaml_merge/yamer-24": {"data": {"s": 2}, "text": "s: 2\n"},
}
for _number, _tag in {
    48: "yes", 49: "no", 51: "~", 52: "a: b", 53: "# x", 55: "&a", 58: "!t", 59: "'x", 67: "[a", 70: ">",
    71: "?", 72: "x #y",
}.items():  # fmt: skip
    DECISIONS[f"yaml_update/yaupd-{_number}"] = _MISREAD
    OURS[f"yaml_update/yaupd-{_number}"] = _IMAGE.format(tag=f'"{_tag}"')


def _updates(case: Case) -> list[Update]:
    given = case["updates"]
    assert isinstance(given, list)
    found = []
    for each in given:
        assert isinstance(each, dict)
        found.append(Update(str(each["key"]), each["value"]))
    return found


def yaml_update(case: Case) -> Json:
    return update_yaml(str(case["input"]), _updates(case))


def yaml_quote(case: Case) -> Json:
    return quote_scalar(case["value"])


def key_split(case: Case) -> Json:
    return list(split(str(case["key"])))


def yaml_set_field(case: Case) -> Json:
    text = update_yaml(str(case["input"]), [Update(str(case["key"]), case["value"])], create=True)
    document: Json = yaml.safe_load(text)
    return document


def yaml_get_field(case: Case) -> Json:
    return get_yaml(str(case["input"]), str(case["key"]))


def yaml_merge(case: Case) -> Json:
    files = case["files"]
    assert isinstance(files, list)
    text = merge_yaml([str(each) for each in files])
    return {"data": yaml.safe_load(text), "text": text}


def json_update(case: Case) -> Json:
    return update_json(str(case["input"]), _updates(case))


def toml_update(case: Case) -> Json:
    return update_toml(str(case["input"]), _updates(case))
