"""Whether an offered release follows from the one in use (number, date, chain), and its key from the trusted one."""

from __future__ import annotations

from datetime import datetime, timedelta

from device_app.errors import AnswerMalformed, BackendRefused, ReleaseForked, ReleaseRefused
from device_app.privacy.sealed import digest
from device_app.prose import Prose
from device_app.store.releases import ChainLink, InstalledReleases, KeptRelease, TrustedKey
from device_app.uplink.backend_client import parsed
from device_app.uplink.http import HttpClient
from device_app.wire.chain import LENGTHS, ReleaseChain, head_after, next_head
from device_app.wire.ids import release_number
from device_app.wire.releases import ReleaseManifest, SignedManifest
from device_app.wire.rotations import KEYS_LIMIT_BYTES, KeyHistory, RotationRefused, fingerprint, follow

REQUESTS = Prose("device_app.uplink", "requests.toml")

_ANOTHER = "it is signed by another key than the pinned one"


def successor(client: HttpClient, trusted: TrustedKey, offered: bytes) -> TrustedKey:
    """`offered` as the key to trust, if rotations lead to it from the trusted one.

    What is asked is the same whatever key is trusted. Raises ReleaseRefused if no chain of rotations leads there, or if
    one of them is forged; the trusted key stays.
    """
    reader_may = (
        f"trusted is {fingerprint(trusted.public_key)}, offered {fingerprint(offered)}. If the operator told you of a "
        "new key by a way that you trust, set backend_key to it"
    )
    try:
        answer = client.get(
            "/v1/keys",
            words=REQUESTS("keys"),
            purpose="sync",
            limit_bytes=KEYS_LIMIT_BYTES,
        )
        history = parsed(KeyHistory, answer, "keys")
        key, rotation = follow(history, trusted.public_key, trusted.rotation)
    except BackendRefused:  # a server without rotations
        key, rotation = trusted.public_key, trusted.rotation
    except (RotationRefused, AnswerMalformed) as broken:
        raise ReleaseRefused("offered now", f"{_ANOTHER}, and {broken}") from broken
    if key != offered:
        raise ReleaseRefused("offered now", f"{_ANOTHER}, which no rotation leads to ({reader_may})")
    return TrustedKey(key, trusted.first, rotation)


AHEAD_AT_MOST = timedelta(days=2)
"""A release may be dated so far ahead of this device's clock. Beyond it none is taken until the clock is set right: one
dated years ahead would forbid every later one."""
CHAIN_LIMIT_BYTES = 16 * 1024 * 1024


def link_of(signed: SignedManifest, manifest: ReleaseManifest) -> ChainLink:
    """The release as the end of its chain."""
    content = digest(signed.manifest.encode())
    return ChainLink(release_number(manifest.release), content, next_head(manifest.chain, manifest.release, content))


def is_old_news(signed: SignedManifest, manifest: ReleaseManifest, store: InstalledReleases) -> bool:
    """Whether an earlier release that this device has used is offered once more, as by one of several workers that is
    behind the others: it isn't used again, and no cause for alarm."""
    current = store.current()
    if current is None or release_number(manifest.release) >= release_number(current.manifest.release):
        return False
    return any(kept.signed.manifest == signed.manifest for kept in store.history())


def require_successor(
    manifest: ReleaseManifest,
    current: KeptRelease,
    store: InstalledReleases,
    client: HttpClient,
    now: datetime,
) -> None:
    """Raise ReleaseRefused unless the offered release comes after the one in use, by number, date and chain.

    The date may not be before that of the release in use, where that lies in the past by this device's clock. Of a
    chain that this device has a part of, the releases in between are asked for (`/v1/releases/chain`, the same for
    everybody). A device whose release is older than chains takes the first chain that it sees.
    """
    name, number = manifest.release, release_number(manifest.release)
    in_use = release_number(current.manifest.release)
    if number == in_use:
        raise ReleaseForked(name, "other content than before under the same number")
    if number < in_use:
        raise ReleaseRefused(name, f"its number is not above that of {current.manifest.release}, which is in use")
    if manifest.created_at < min(current.manifest.created_at, now):
        raise ReleaseRefused(name, f"its date is before that of {current.manifest.release}")
    kept = store.chained()
    if kept is None:
        return
    head: str | None = kept.head
    if number > kept.number + 1:
        between = _chain_since(client, kept, number).releases
        head = head_after(head, [each for each in between if kept.number < release_number(each.release) < number])
    if manifest.chain != head:
        why = f"the releases before it are others than those that this device was shown up to r{kept.number}"
        raise ReleaseForked(name, why)


def require_sane_date(manifest: ReleaseManifest, now: datetime) -> None:
    """Raise ReleaseRefused for a release dated more than two days ahead of this device's clock."""
    if manifest.created_at > now + AHEAD_AT_MOST:
        why = (
            f"its date, {manifest.created_at:%Y-%m-%d}, is more than two days ahead of this device's clock, "
            f"{now:%Y-%m-%d}; if that clock is wrong, set it"
        )
        raise ReleaseRefused(manifest.release, why)


def require_in_chain(client: HttpClient, store: InstalledReleases) -> None:
    """Raise ReleaseForked unless the release in use is in the chain that the server shows everybody."""
    kept = store.chained()
    if kept is not None:
        _chain_since(client, kept, kept.number + 1)


def _chain_since(client: HttpClient, kept: ChainLink, number: int) -> ReleaseChain:
    """The server's chain from the kept release to the one before `number` at least. Raises ReleaseForked if it doesn't
    hold the kept one as it was, and as HttpClient."""
    for length in LENGTHS:
        answer = client.get(
            f"/v1/releases/chain?last={length}",
            words=REQUESTS("chain"),
            purpose="sync",
            limit_bytes=CHAIN_LIMIT_BYTES,
        )
        chain = parsed(ReleaseChain, answer, "chain of releases")
        here = {release_number(each.release): each for each in chain.releases}
        if here and min(here) <= kept.number:
            break
    mine, newest = here.get(kept.number), max(here, default=0)
    if mine is None or mine.manifest_sha256 != kept.manifest_sha256:
        raise ReleaseForked(f"r{kept.number}", "the list of releases that the server shows everybody doesn't have it")
    if newest < number - 1:
        raise ReleaseForked(f"r{number}", f"the list of releases that the server shows everybody ends with r{newest}")
    return chain
