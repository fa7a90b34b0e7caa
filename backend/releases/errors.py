"""Errors of releases."""

from __future__ import annotations

from backend.errors import OwnfeedError


class UnknownRelease(OwnfeedError):
    """No such release was published here; the problem's member `current` names the current one."""

    code, status, title = "unknown-release", 404, "No such release"

    def __init__(self, current: str) -> None:
        super().__init__(
            f"That release was never published here; the current one is {current}.", field="release", current=current
        )


class ReleaseNotKept(OwnfeedError):
    """The release is so old that its blobs were deleted; it can't be published again."""

    code, status, title = "release-not-kept", 409, "That release is no longer stored"

    def __init__(self, release: str, oldest: str) -> None:
        super().__init__(
            f"The parts of {release} are gone; {oldest} is the oldest that is kept.", field="release", limit=oldest
        )


class UnknownBlob(OwnfeedError):
    """No blob has this hash."""

    code, status, title = "unknown-blob", 404, "No such blob"

    def __init__(self) -> None:
        super().__init__("There is no blob with that hash.", field="sha256")


class UnknownShard(OwnfeedError):
    """The live pool has no vector shard of this name; the list names those that exist."""

    code, status, title = "unknown-shard", 404, "No such vector shard"

    def __init__(self) -> None:
        super().__init__("The pool no longer has a vector shard with that name.", field="shard")


class NothingPublished(OwnfeedError):
    """No release is published yet."""

    code, status, title = "nothing-published", 503, "No release is published yet"

    def __init__(self) -> None:
        super().__init__("The server has published no release yet; try again soon.")


class ReleaseNotPublished(OwnfeedError):
    """The release failed a check; the current one stays."""

    code, status, title = "release-not-published", 500, "The release failed its checks"


class RankerBeingPrepared(OwnfeedError):
    """Another ranker is being exported."""

    code, status, title = "ranker-being-prepared", 409, "Another model is being prepared"

    def __init__(self, ranker: str) -> None:
        super().__init__(f"{ranker} is being prepared; one is prepared at a time.", field="ranker")


class RoundsUnderWay(OwnfeedError):
    """Publishing now would replace the release that current or ordered rounds use."""

    code, status, title = "rounds-under-way", 409, "Rounds are under way"

    def __init__(self) -> None:
        super().__init__("A running or queued round depends on the current release, so no other can be published now.")


class SigningKeyRefused(OwnfeedError):
    """The signing key is missing, unreadable, or not the one that signed the newest release."""

    code, status, title = "signing-key-refused", 500, "The signing key can't be used"

    def __init__(self, detail: str) -> None:
        super().__init__(detail, field="data_dir")


class ChainFileRefused(OwnfeedError):
    """The chain file is damaged or does not match the database.

    Devices would refuse any further release.
    """

    code, status, title = "chain-file-refused", 500, "The list of published releases does not match the database"

    def __init__(self, path: object, why: str) -> None:
        super().__init__(
            f"{path} lists the releases that devices may have seen, and {why}. Devices would refuse everything "
            "published now. Restore a database and a file that belong together; docs/operate.md says how."
        )


class BlobDamaged(OwnfeedError):
    """A blob's bytes on disk don't match its hash."""

    code, status, title = "blob-damaged", 500, "A blob is damaged on the server's disk"

    def __init__(self, sha256: str) -> None:
        super().__init__(f"The blob {sha256[:12]} is damaged on the server's disk.")
