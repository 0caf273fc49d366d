"""Names that follow from what they name: Freight, collections, Promotions and aliases.

The Freight hash, the collection id and the shape of a Promotion's name are Kargo's, bit for bit, so that a release
has the same name in both. Aliases are of the same shape (adjective-animal) but chosen from the hash and from word
lists of our own, so that the same Freight gets the same alias after a crash.
"""

from __future__ import annotations

import hashlib
import posixpath
from collections.abc import Collection, Iterable
from datetime import datetime

from bot.domain.freight import Artifact, Chart, FreightName, FreightOrigin, GitCommit, Image
from bot.domain.urls import normalize_chart_url, normalize_git_url

_MAX_NAME = 253
_ULID_LENGTH = 26
_SHORT_HASH = 7
_CROCKFORD = "0123456789abcdefghjkmnpqrstvwxyz"


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_ADJECTIVES = _words(
    "agile amber ample azure balmy bold brave bright brisk calm candid cheery chilly civil clever copper coral cosmic "
    "crisp curious dapper daring deft dewy eager early earnest easy elfin fabled fair fancy feisty fleet fluffy fond "
    "frank fresh frosty gentle gifted glad gleaming golden grand hardy hazel hearty honest humble icy ideal indigo "
    "ivory jaunty jolly jovial keen kind lively lofty loyal lucid lucky lunar mellow merry mighty minty misty modest "
    "neat nimble noble olive opal orderly patient peachy pearly placid plucky polar polite proud quick quiet radiant "
    "rapid ready rosy royal ruby rustic sandy serene sharp shiny silent silver sleek smart snowy solar solid spry "
    "stark steady stellar still stout sturdy subtle sunny super swift tender tidy tranquil trim trusty upbeat valiant "
    "velvet vivid warm wise witty woody young zealous zesty"
)
_ANIMALS = _words(
    "adder alpaca anchovy ant antelope badger barbel bat beaver bee bison boar bobcat buffalo bunting camel canary "
    "caribou carp cat chamois cheetah chough cicada civet clam cobra cod condor coot coyote crab crane cricket crow "
    "curlew deer dingo dolphin dormouse dove dragonfly duck dunlin eagle eel egret eland elk emu falcon ferret finch "
    "firefly flamingo fox frog gannet gazelle gecko gibbon giraffe gnu goat goose gopher grebe grouse gull hare hawk "
    "hedgehog heron herring hoopoe hornet horse hyena ibex ibis iguana impala jackal jackdaw jaguar jay kestrel kite "
    "kiwi koala kudu lark lemming lemur leopard lion lizard llama lobster lynx macaw magpie mallard marmot marten "
    "meerkat merlin mink mole moose moth mouse mule mussel newt ocelot octopus okapi oriole oryx osprey otter owl ox "
    "oyster panda panther parrot pelican penguin perch pheasant pigeon pika pike plover puffin puma quail rabbit "
    "raccoon raven reindeer robin rook salmon seal shark sheep shrew skink skylark sloth snail sparrow squid starling "
    "stork swallow swan swift tapir tern thrush tiger toad trout turtle vole vulture walrus wasp weasel whale wolf "
    "wombat wren yak zebra"
)


def freight_name(
    origin: FreightOrigin,
    *,
    commits: Iterable[GitCommit] = (),
    images: Iterable[Image] = (),
    charts: Iterable[Chart] = (),
    artifacts: Iterable[Artifact] = (),
) -> FreightName:
    """Kargo's name of Freight: a SHA-1 in hex over the origin and the artifacts, in whatever order they come."""
    parts = [_commit_part(commit) for commit in commits]
    parts += [
        _named(f"{image.repo_url}:{image.tag}@{image.digest}", image.subscription_name) for image in images
    ]
    parts += [_chart_part(chart) for chart in charts]
    parts += [f"{item.artifact_type}:{item.subscription_name}:{item.version}" for item in artifacts]
    # Go sorts by bytes; Python's order by code points is the same for UTF-8.
    text = f"{origin}:" + "|".join(sorted(parts))
    return FreightName(_sha1(text))


def _commit_part(commit: GitCommit) -> str:
    tag = f":{commit.tag}" if commit.tag else ""
    return _named(f"{normalize_git_url(commit.repo_url)}{tag}:{commit.id}", commit.subscription_name)


def _chart_part(chart: Chart) -> str:
    return _named(
        f"{_join_path(normalize_chart_url(chart.repo_url), chart.name)}:{chart.version}",
        chart.subscription_name,
    )


def _named(text: str, subscription: str) -> str:
    return f"{text}:{subscription}" if subscription else text


def _join_path(*parts: str) -> str:
    present = [part for part in parts if part]
    if not present:
        return ""
    joined = posixpath.normpath("/".join(present))
    # POSIX lets a path begin with two slashes; Go's path.Clean does not.
    return "/" + joined.lstrip("/") if joined.startswith("//") else joined


def _sha1(text: str) -> str:
    return hashlib.sha1(text.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()


def collection_id(names: Iterable[str]) -> str:
    """The id of a Freight collection: SHA-1 in hex over its Freight's names, sorted."""
    return _sha1(",".join(sorted(names)))


def promotion_name(stage: str, ulid: str, freight: str) -> str:
    """The name of a Promotion, `<stage>.<ulid>.<freight, seven digits>` in lower case, at most 253 characters.

    A longer Stage name is cut. Empty if Stage or Freight is.
    """
    if not stage or not freight:
        return ""
    short = freight[:_SHORT_HASH]
    room = _MAX_NAME - _ULID_LENGTH - _SHORT_HASH - 2
    # A name may not have a separator before the dot, which a cut could leave there.
    prefix = stage if len(stage) <= room else stage[:room].rstrip("-.")
    return f"{prefix}.{ulid}.{short}".lower()


def ulid(now: datetime, entropy: bytes) -> str:
    """A ULID in lower case: milliseconds of `now`, then ten bytes of entropy; sorts by time.

    Raises ValueError unless exactly ten bytes are given.
    """
    if len(entropy) != 10:
        raise ValueError(f"a ULID takes 10 bytes of entropy, not {len(entropy)}")
    number = (int(now.timestamp() * 1000) << 80) | int.from_bytes(entropy, "big")
    return "".join(_CROCKFORD[(number >> shift) & 31] for shift in range(125, -5, -5))


def freight_alias(name: str, taken: Collection[str]) -> str:
    """A readable alias for Freight that none of the taken ones equals.

    It follows from the hash; where a project has it already, more digits of the hash tell the two apart.
    """
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()
    adjective = _ADJECTIVES[int.from_bytes(digest[:4], "big") % len(_ADJECTIVES)]
    animal = _ANIMALS[int.from_bytes(digest[4:8], "big") % len(_ANIMALS)]
    alias = f"{adjective}-{animal}"
    if alias not in taken:
        return alias
    suffix = digest.hex()
    for length in range(4, len(suffix) + 1):
        longer = f"{alias}-{suffix[:length]}"
        if longer not in taken:
            return longer
    raise ValueError(f"every alias for Freight {name} is taken")
