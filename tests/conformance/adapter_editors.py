"""Areas 08_*: the YAML, JSON and TOML editors, and the cases in which ours deliberately gives something safer.

`DECISIONS` names each case that is answered differently and why; `OURS` holds what we give there instead.
"""

from __future__ import annotations

import copy
from collections.abc import Callable

import yaml

from bot.domain.values import Json
from bot.editors.keys import Update, split_key
from bot.editors.yaml import get_yaml, merge_yaml, quote_scalar, update_yaml

Case = dict[str, Json]


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
    return list(split_key(str(case["key"])))


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
