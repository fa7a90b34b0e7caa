"""Pulling releases: signature, hashes and a trial run first, then one swap; and blobs that rounds need besides."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from pydantic import ValidationError

from device_app.errors import BackendRefused, ReleaseRefused
from device_app.privacy.sealed import digest
from device_app.prose import Prose
from device_app.store.blobs import Blobs
from device_app.store.releases import InstalledReleases, KeptRelease, blob_digests, blob_refs
from device_app.sync.installed_release import Release
from device_app.sync.succession import (
    is_old_news,
    link_of,
    require_in_chain,
    require_sane_date,
    require_successor,
    successor,
)
from device_app.uplink.backend_client import parsed
from device_app.uplink.http import HttpClient
from device_app.wire.ids import short_release
from device_app.wire.releases import BlobRef, ReleaseManifest, SignatureRefused, SignedManifest, verify

REQUESTS = Prose("device_app.uplink", "requests.toml")

ASKED_WHOLE_EVERY = timedelta(hours=1)
CHAIN_CHECKED_EVERY = timedelta(days=1)
RELEASE_LIMIT_BYTES = 256 * 1024 * 1024


class ReleaseSync:
    """Keeps the release in use up to date.

    The key: `pinned_key` from the settings if given, else the one pinned in the store; on the first sync of a device
    without either, the backend's own, which is pinned once the release has passed (trust on first use). A release under
    another key is taken if rotations lead to it from the trusted one, whichever way that was chosen; the new key is
    then the pinned one, and the old one is worth nothing any more. So is a key of the settings whose release has taken
    the place of another server's: it stays trusted if the settings name it no more.

    A release must follow from the one in use (`sync.succession`); once a day, and with each new release, the one in use
    is looked for in the list of releases that everybody gets. Where the settings name the key of another server, its
    releases begin anew.

    What it asks depends only on which release and blobs are here. The ETag sent is the number of the release in use
    modulo 16, so that it can't serve as a mark; once an hour none is sent, as a release 16 ahead has the same.
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
        """Look for a release; True if another one (or a repaired one) is in use now.

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

    def _is_of_another_server(self, signed: SignedManifest, current: KeptRelease) -> bool:
        """Whether the reader has named another key than the one in use was signed with, and this is signed with it.

        A key to which, or from which, this device has followed rotations is of the same server: an operator who goes
        back to an earlier key doesn't begin anew, and what that key signed before stays old.
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
                return  # its own trouble says nothing against its releases; the next look asks again
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

    def _install(self, signed: SignedManifest, manifest: ReleaseManifest, current: KeptRelease | None) -> None:
        now = self._clock()
        if self._pinned_key is None and self._store.pinned_key() is None:
            self._store.pin(signed.public_key, now)
        if current is None or signed.manifest != current.signed.manifest:
            anew = current is not None and self._is_of_another_server(signed, current)
            if anew:
                self._store.pin_anew(signed.public_key, now)
            self._store.install(signed, (), now, link_of(signed, manifest), anew=anew)
            self._chain_checked_at = None
        self._store.prune_blobs()


def _within(before: datetime | None, now: datetime, span: timedelta) -> bool:
    return before is not None and timedelta() <= now - before < span


def fetch_blob(client: HttpClient, ref: BlobRef, release: str) -> bytes:
    """A blob whose size and hash are as the manifest says. Raises ReleaseRefused otherwise, and BackendRefused for a
    backend that can't answer now."""
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
        raise ReleaseRefused(release, f"blob {ref.sha256[:12]} can't be had: {refused}") from refused
    return checked_blob(answer.body, ref, release)


def checked_blob(content: bytes, ref: BlobRef, release: str) -> bytes:
    """The content itself, once its size and hash are right; raises ReleaseRefused otherwise."""
    if len(content) != ref.size_bytes:
        raise ReleaseRefused(release, f"blob {ref.sha256[:12]} has {len(content)} bytes, declared {ref.size_bytes}")
    if digest(content) != ref.sha256:
        raise ReleaseRefused(release, f"blob {ref.sha256[:12]} has another hash than declared")
    return content


class MaterialSync:
    """Blobs of rounds, kept in the folder of releases' blobs, where those that no release names go after a day without
    a round that needs them.

    What it asks for is named in the offer of a round, and by nothing the reader did.
    """

    def __init__(self, client: HttpClient, blobs: Blobs) -> None:
        self._client, self._blobs = client, blobs

    def fetch(self, ref: BlobRef) -> bytes:
        """The blob, its size and hash checked. Raises ReleaseRefused if they don't fit, and errors as HttpClient."""
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
