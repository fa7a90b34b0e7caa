"""What can go wrong with releases.

OwnfeedError
├── UnknownRelease        404  never published here
├── ReleaseNotKept        409  so old that its parts are gone
├── UnknownBlob           404  no blob of that hash
├── UnknownShard          404  the live pool has no such vector shard
├── NothingPublished             503  nothing is published yet
├── ReleaseNotPublished   500  it failed a check; the current one stays
├── RankerBeingPrepared   409  one ranker is exported at a time
├── RoundsUnderWay        409  a release now would take theirs away
├── SigningKeyRefused     500  the key that signed the newest release is missing, unreadable or another
├── ChainFileRefused      500  the file of the chain is damaged, or of other releases than the database's
└── BlobDamaged           500  the bytes on disk no longer fit their hash
"""

from __future__ import annotations

from backend.errors import OwnfeedError


class UnknownRelease(OwnfeedError):
    """A release that was never published here; the problem's member `current` names the server's."""

    code, status, title = "unknown-release", 404, "No such release"

    def __init__(self, current: str) -> None:
        super().__init__(
            f"That release was never published here; the current one is {current}.", field="release", current=current
        )


class ReleaseNotKept(OwnfeedError):
    """A release so old that its parts were swept; it can't be published again."""

    code, status, title = "release-not-kept", 409, "That release is no longer kept"

    def __init__(self, release: str, oldest: str) -> None:
        super().__init__(
            f"The parts of {release} are gone; {oldest} is the oldest that is kept.", field="release", limit=oldest
        )


class UnknownBlob(OwnfeedError):
    """No blob of that hash."""

    code, status, title = "unknown-blob", 404, "No such blob"

    def __init__(self) -> None:
        super().__init__("There is no blob of that hash.", field="sha256")


class UnknownShard(OwnfeedError):
    """No vector shard of that name in the live pool; the list names those there are."""

    code, status, title = "unknown-shard", 404, "No such vector shard"

    def __init__(self) -> None:
        super().__init__("The pool has no vector shard of that name any more.", field="shard")


class NothingPublished(OwnfeedError):
    """Nothing is published yet."""

    code, status, title = "nothing-published", 503, "No release is published yet"

    def __init__(self) -> None:
        super().__init__("The server has published no release yet; try again soon.")


class ReleaseNotPublished(OwnfeedError):
    """A release failed a check; the current one stays."""

    code, status, title = "release-not-published", 500, "The release failed its checks"


class RankerBeingPrepared(OwnfeedError):
    """Another ranker is being exported."""

    code, status, title = "ranker-being-prepared", 409, "Another model is being prepared"

    def __init__(self, ranker: str) -> None:
        super().__init__(f"{ranker} is being prepared; one is prepared at a time.", field="ranker")


class RoundsUnderWay(OwnfeedError):
    """A release published now would take theirs from the rounds under way, or from those that these have ordered."""

    code, status, title = "rounds-under-way", 409, "Rounds are under way"

    def __init__(self) -> None:
        super().__init__("A release published now would not be the one that a round under way, or ordered, is for.")


class SigningKeyRefused(OwnfeedError):
    """The key that signed the newest release is missing, can't be read, or is another than the one on disk."""

    code, status, title = "signing-key-refused", 500, "The signing key can't be used"

    def __init__(self, detail: str) -> None:
        super().__init__(detail, field="data_dir")


class ChainFileRefused(OwnfeedError):
    """Going on would publish releases that no device takes."""

    code, status, title = "chain-file-refused", 500, "The chain of releases does not fit the database"

    def __init__(self, path: object, why: str) -> None:
        super().__init__(
            f"{path} lists the releases that devices may have seen, and {why}. Devices would take nothing that is "
            "published now. Put back the database, or the file, that belongs with the other; docs/operate.md says how."
        )


class BlobDamaged(OwnfeedError):
    """A blob's bytes on disk no longer fit its hash."""

    code, status, title = "blob-damaged", 500, "A blob is damaged on the server's disk"

    def __init__(self, sha256: str) -> None:
        super().__init__(f"The blob {sha256[:12]} is damaged on the server's disk.")
