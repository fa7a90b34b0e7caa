"""Download releases, check that they follow the current one, and install them.

A release must follow by number, date and chain, under the trusted key or one that rotations lead to. Signature, hashes
and a trial run are checked before the release is installed in one step. `MaterialSync` downloads the other blobs that
rounds need.
"""

from collections.abc import Callable
from datetime import datetime, timedelta

from pydantic import ValidationError

from device_app.errors import AnswerMalformed, BackendRefused, ReleaseForked, ReleaseRefused
from device_app.privacy.sealed import digest
from device_app.store.blobs import Blobs
from device_app.store.releases import ChainLink, InstalledReleases, StoredRelease, TrustedKey, blob_digests, blob_refs
from device_app.sync.installed_release import Release
from device_app.uplink.backend_client import parsed
from device_app.uplink.http import HttpClient
from protocol.chain import (
    KEYS_LIMIT_BYTES,
    LENGTHS,
    KeyHistory,
    ReleaseChain,
    RotationRefused,
    fingerprint,
    follow,
    head_after,
    next_head,
)
from protocol.ids import release_number, short_release
from protocol.releases import BlobRef, ReleaseManifest, SignatureRefused, SignedManifest, verify
from protocol.text_catalogue import TextCatalogue

REQUESTS = TextCatalogue("device_app.uplink", "requests.toml")

_ANOTHER = "it is not signed by the pinned key"


def successor(client: HttpClient, trusted: TrustedKey, offered: bytes) -> TrustedKey:
    """Return the key to trust after following rotations from the trusted one to `offered`.

    Requests don't depend on the trusted key. Raises ReleaseRefused if no chain of rotations leads there, or if one
    of them is forged; the trusted key stays.
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
"""Furthest that a release may be dated ahead of this device's clock. A release beyond it is refused until the clock is
corrected: one dated years ahead would block every later one."""
CHAIN_LIMIT_BYTES = 16 * 1024 * 1024


def link_of(signed: SignedManifest, manifest: ReleaseManifest) -> ChainLink:
    """Return the release's link, with which this device's chain now ends."""
    content = digest(signed.manifest.encode())
    return ChainLink(release_number(manifest.release), content, next_head(manifest.chain, manifest.release, content))


def is_old_news(signed: SignedManifest, manifest: ReleaseManifest, store: InstalledReleases) -> bool:
    """Return whether a release that this device has already used is offered again.

    That happens when one of several server workers is behind the others: the release isn't used again, and this is not
    an error.
    """
    current = store.current()
    if current is None or release_number(manifest.release) >= release_number(current.manifest.release):
        return False
    return any(kept.signed.manifest == signed.manifest for kept in store.history())


def require_successor(
    manifest: ReleaseManifest,
    current: StoredRelease,
    store: InstalledReleases,
    client: HttpClient,
    now: datetime,
) -> None:
    """Raise ReleaseRefused unless the offered release comes after the one in use.

    Its number, date and chain are compared. The date may not be before that of the release in use, if that is in the
    past by this device's clock. If this device lacks a part of the chain, it requests the releases in between
    (`/v1/releases/chain`, the same for every device).
    """
    name, number = manifest.release, release_number(manifest.release)
    in_use = release_number(current.manifest.release)
    if number == in_use:
        raise ReleaseForked(name, "its content differs from an earlier release with the same number")
    if number < in_use:
        raise ReleaseRefused(name, f"its number is not above that of {current.manifest.release}, which is in use")
    if manifest.created_at < min(current.manifest.created_at, now):
        raise ReleaseRefused(name, f"its date is before that of {current.manifest.release}")
    kept = store.chained()
    assert kept is not None, "a release must be installed together with its place in the chain"
    head: str | None = kept.head
    if number > kept.number + 1:
        between = _chain_since(client, kept, number).releases
        head = head_after(head, [each for each in between if kept.number < release_number(each.release) < number])
    if manifest.chain != head:
        why = f"the releases before it differ from those this device was shown up to r{kept.number}"
        raise ReleaseForked(name, why)


def require_sane_date(manifest: ReleaseManifest, now: datetime) -> None:
    """Raise ReleaseRefused for a release dated more than two days ahead of this device."""
    if manifest.created_at > now + AHEAD_AT_MOST:
        why = (
            f"its date, {manifest.created_at:%Y-%m-%d}, is more than two days ahead of this device's clock, "
            f"{now:%Y-%m-%d}; if that clock is wrong, set it"
        )
        raise ReleaseRefused(manifest.release, why)


def require_in_chain(client: HttpClient, store: InstalledReleases) -> None:
    """Raise ReleaseForked unless the release in use is in the server's public chain."""
    kept = store.chained()
    if kept is not None:
        _chain_since(client, kept, kept.number + 1)


def _chain_since(client: HttpClient, kept: ChainLink, number: int) -> ReleaseChain:
    """Return the server's chain from the stored release at least to the one before `number`.

    Raises ReleaseForked if it doesn't contain the stored release unchanged, and errors as in HttpClient.
    """
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


ASKED_WHOLE_EVERY = timedelta(hours=1)
CHAIN_CHECKED_EVERY = timedelta(days=1)
RELEASE_LIMIT_BYTES = 256 * 1024 * 1024


class ReleaseSync:
    """Keeps the release in use up to date.

    The key: `pinned_key` from the settings if given, else the one pinned in the store; on the first sync of a device
    without either, the backend's own, which is pinned once the release has passed (trust on first use). A release under
    another key is accepted if rotations lead to it from the trusted one, however that was chosen; the new key is then
    the pinned one, and the old one is no longer valid. The same holds for a key from the settings whose release has
    replaced another server's: it stays trusted if the settings no longer name it.

    A release must follow from the one in use (`require_successor`); once a day, and with each new release, the one in
    use is looked up in the list of releases that every device gets. If the settings name the key of another server, its
    releases start a new chain.

    Requests depend only on which release and blobs are stored. The ETag sent is the number of the release in use modulo
    16, so that it can't be used to mark a device; once an hour none is sent, because a release 16 ahead has the same
    ETag.
    """

    def __init__(
        self,
        client: HttpClient,
        store: InstalledReleases,
        clock: Callable[[], datetime],
        pinned_key: bytes | None = None,
    ) -> None:
        self._client = client
        self._store = store
        self._clock = clock
        self._pinned_key = pinned_key
        self._asked_whole_at: datetime | None = None
        self._chain_checked_at: datetime | None = None

    def refresh(self) -> bool:
        """Poll for a release; True if another one (or a repaired one) is in use now.

        Raises ReleaseRefused if it fails a check: the one in use stays. Network errors as in HttpClient.
        """
        current = self._store.current()
        whole = current is not None and all(self._store.blobs.has(one) for one in blob_digests(current.manifest))
        now = self._clock()
        known = None
        if current is not None and whole and _within(self._asked_whole_at, now, ASKED_WHOLE_EVERY):
            known = str(short_release(current.manifest.release))
        answer = self._client.get("/v1/releases/current", words=REQUESTS("release"), purpose="sync", etag=known)
        if answer.status == 304:
            self._check_chain(now)
            return False
        self._asked_whole_at = now
        signed = parsed(SignedManifest, answer, "release")
        manifest = self._verified(signed)
        if current is not None and signed.manifest == current.signed.manifest:
            if whole:
                self._check_chain(now)
                return False
        elif current is None or self._is_of_another_server(signed, current):
            require_sane_date(manifest, now)
        elif is_old_news(signed, manifest, self._store):
            return False
        else:
            require_sane_date(manifest, now)
            require_successor(manifest, current, self._store, self._client, now)
        self._fetch_blobs(manifest)
        Release(manifest, self._store.blobs).check()
        self._install(signed, manifest, current)
        return True

    def _is_of_another_server(self, signed: SignedManifest, current: StoredRelease) -> bool:
        """Return whether this release is signed with another server's key from the settings.

        The settings must name another key than that of the release in use. A key that this device has followed
        rotations to or from belongs to the same server: an operator who returns to an earlier key doesn't start a new
        chain, and what that key signed before stays old.
        """
        if not signed.public_key == self._pinned_key != current.signed.public_key:
            return False
        kept = self._store.trusted_key()
        return kept is None or kept.rotation == 0 or self._pinned_key not in (kept.first, kept.public_key)

    def _check_chain(self, now: datetime) -> None:
        if not _within(self._chain_checked_at, now, CHAIN_CHECKED_EVERY):
            try:
                require_in_chain(self._client, self._store)
            except BackendRefused as refused:
                if refused.problem.status < 500:
                    raise
                return  # a failing server says nothing against its releases; the next poll retries
            self._chain_checked_at = now

    def _verified(self, signed: SignedManifest) -> ReleaseManifest:
        trusted = self._store.trusted_key(self._pinned_key)
        followed = None
        if trusted is not None and trusted.public_key != signed.public_key:
            followed = successor(self._client, trusted, signed.public_key)
        try:
            manifest = verify(signed, signed.public_key)
        except SignatureRefused as broken:
            raise ReleaseRefused("offered now", str(broken)) from broken
        except ValidationError as broken:
            first = broken.errors(include_url=False, include_input=False)[0]
            where = ".".join(str(part) for part in first["loc"])
            raise ReleaseRefused("offered now", f"its manifest is malformed: {where}: {first['msg']}") from broken
        except ValueError as broken:
            raise ReleaseRefused("offered now", f"its key is malformed: {broken}") from broken
        if followed is not None:
            self._store.pin_successor(followed, self._clock())
        return manifest

    def _fetch_blobs(self, manifest: ReleaseManifest) -> None:
        refs = blob_refs(manifest)
        total_bytes = sum(ref.size_bytes for ref in refs.values())
        if total_bytes > RELEASE_LIMIT_BYTES:
            raise ReleaseRefused(manifest.release, f"it has {total_bytes} bytes, the limit is {RELEASE_LIMIT_BYTES}")
        for ref in refs.values():
            if self._store.blobs.read(ref.sha256) is None:
                self._store.blobs.put(fetch_blob(self._client, ref, manifest.release))

    def _install(self, signed: SignedManifest, manifest: ReleaseManifest, current: StoredRelease | None) -> None:
        now = self._clock()
        if self._pinned_key is None and self._store.pinned_key() is None:
            self._store.pin(signed.public_key, now)
        if current is None or signed.manifest != current.signed.manifest:
            new_chain = current is not None and self._is_of_another_server(signed, current)
            if new_chain:
                self._store.replace_pin(signed.public_key, now)
            self._store.install(signed, (), now, link_of(signed, manifest), new_chain=new_chain)
            self._chain_checked_at = None
        self._store.prune_blobs()


def _within(before: datetime | None, now: datetime, span: timedelta) -> bool:
    return before is not None and timedelta() <= now - before < span


def fetch_blob(client: HttpClient, ref: BlobRef, release: str) -> bytes:
    """Fetch a blob, and check its size and hash against the manifest.

    Raises ReleaseRefused otherwise, and BackendRefused if the backend can't answer now.
    """
    try:
        answer = client.get(
            f"/v1/blobs/{ref.sha256}",
            words=REQUESTS("release_part"),
            purpose="sync",
            accept="application/octet-stream",
            limit_bytes=max(1, ref.size_bytes),
        )
    except BackendRefused as refused:
        if refused.problem.status >= 500:
            raise  # the backend's own trouble says nothing against the release
        raise ReleaseRefused(release, f"blob {ref.sha256[:12]} can't be downloaded: {refused}") from refused
    return checked_blob(answer.body, ref, release)


def checked_blob(content: bytes, ref: BlobRef, release: str) -> bytes:
    """Return the content, if its size and hash are right. Raises ReleaseRefused otherwise."""
    if len(content) != ref.size_bytes:
        raise ReleaseRefused(release, f"blob {ref.sha256[:12]} has {len(content)} bytes, declared {ref.size_bytes}")
    if digest(content) != ref.sha256:
        raise ReleaseRefused(release, f"blob {ref.sha256[:12]}: its hash differs from the declared one")
    return content


class MaterialSync:
    """Fetches blobs for rounds and stores them in the folder of releases' blobs.

    Blobs that no release names are deleted after a day without a round that needs them. Requests depend on the offer of
    a round, never on the reader.
    """

    def __init__(self, client: HttpClient, blobs: Blobs) -> None:
        self._client, self._blobs = client, blobs

    def fetch(self, ref: BlobRef) -> bytes:
        """Fetch the blob and check its size and hash.

        Raises ReleaseRefused if they don't match, and errors as in HttpClient.
        """
        kept = self._blobs.read(ref.sha256)
        if kept is not None:
            self._blobs.touch(ref.sha256)
            return kept
        answer = self._client.get(
            f"/v1/blobs/{ref.sha256}",
            words=REQUESTS("round_part"),
            purpose="sync",
            accept="application/octet-stream",
            limit_bytes=max(1, ref.size_bytes),
        )
        content = checked_blob(answer.body, ref, "of the round")
        self._blobs.put(content)
        return content
