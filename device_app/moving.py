"""Imports what another device of the same reader exported.

An export has what was read, reacted to and saved, and the privacy charges.
"""

import json
from collections.abc import Callable
from datetime import UTC, datetime

import numpy as np
from pydantic import ValidationError

from device_app.copies import Copies
from device_app.errors import ExportRefused
from device_app.privacy.accounting.ledger import Ledger
from device_app.privacy.accounting.limits import Ceilings, Limits
from device_app.privacy.accounting.moved_charges import charges_since, paid_since, take_charges
from device_app.reading.interest_profile import InterestNames
from device_app.reports.policy import ReportPolicy
from device_app.settings import PrivacySettings
from device_app.store.database import Database
from device_app.store.exported import MovedChoices, ReaderExport, read_export
from device_app.store.preferences import CHOSEN_SECTIONS, TAKEN_OVER, TRAINING_PAUSED
from device_app.store.rows import from_us
from device_app.store.searches import SAVED_LIMIT
from device_app.stores import DeviceStores


class Moving:
    """Merges another device's data into this device.

    Args:
        set_privacy: changes and stores switches.
        changed: called when data that feeds are made from has changed.
        keeps_switches: ignore the file's switches. Set on a device with own feeds, which sends nothing
            (`composition.NOTHING_LEAVES`).
    """

    def __init__(
        self,
        stores: DeviceStores,
        policy: ReportPolicy,
        ledger: Ledger,
        names: InterestNames,
        copies: Copies,
        set_privacy: Callable[..., PrivacySettings],
        changed: Callable[[], None],
        *,
        keeps_switches: bool = False,
    ) -> None:
        self._stores, self._policy, self._ledger, self._names = stores, policy, ledger, names
        self._copies, self._set_privacy, self._changed = copies, set_privacy, changed
        self._keeps_switches = keeps_switches

    def take_over(self, content: bytes, *, used: bool, settings: bool) -> None:
        """Import an export completely or not at all; the newer of two conflicting choices wins.

        If the device stops while searches are being written, it writes them when it is opened again. used: the other
        device may have been used since the export, so everything it may have spent is charged here too. settings: the
        other device's switches and sections apply here from now on; with keeps_switches, only its sections.

        Displays and clicks made until now are excluded from further counts, and no round opened before now is joined,
        because the other device may have taken part. What was deleted here but not there comes back. The log of
        requests, which describes what left the other device, isn't imported.

        Formal guarantees: those of `moved_charges`. Existing copies are dropped: restoring one would lose the imported
        charges.

        Raises ExportRefused naming the field and its limit.
        """
        now = self._ledger.now()
        exported = read_export(content, now)
        choices, own = exported.choices, self._policy.own
        theirs = _with(PrivacySettings(), choices)
        _with(own, choices)
        with self._copies.deleting():
            self._stores.moved_searches.finish()  # from an earlier import that couldn't finish
            try:
                with self._stores.database.transaction():
                    if settings:
                        self._choose_as(choices)
                    self._charge(exported, theirs, now, used=used)
                    _keep_spent(exported, self._stores.database)
                    self._stores.counted.pass_over(now)
                    self._stores.preferences.set(TAKEN_OVER, now.astimezone(UTC).isoformat())
                    _keep_reading(exported, self._stores, now)
                    _put_searches(exported, self._stores)
                    for interest in choices.interests:
                        if interest.name:
                            self._names.name(interest.news, interest.name)
                        if interest.muted:
                            self._names.mute(interest.news, True)
            except BaseException:
                self._policy.own = own
                raise
            try:
                self._stores.moved_searches.finish()
            finally:
                self._changed()

    def _choose_as(self, choices: MovedChoices) -> None:
        if choices.chosen_sections is not None:
            self._stores.preferences.set(CHOSEN_SECTIONS, list(choices.chosen_sections))
        if self._keeps_switches:
            return
        if choices.training_paused is not None:
            self._stores.preferences.set(TRAINING_PAUSED, choices.training_paused)
        if choices.pictures_hidden is not None:
            self._stores.pictures.show(not choices.pictures_hidden)
        self._set_privacy(**(choices.privacy or {}))

    def _charge(self, exported: ReaderExport, theirs: PrivacySettings, now: datetime, *, used: bool) -> None:
        charges, since = exported.tables.charge, []
        if used:
            limits = Limits.of(Ceilings.of(theirs)).or_higher(Limits.of(self._ledger.ceilings))
            try:
                paid = paid_since(self._ledger.repository, exported.exported_at)
                since = charges_since(charges, limits, exported.exported_at, now, paid)
            except ValueError as refused:
                raise ExportRefused(str(refused)) from None
        take_charges(self._stores.database, charges)
        for entry in since:
            self._ledger.repository.append(entry)


def _with(settings: PrivacySettings, choices: MovedChoices) -> PrivacySettings:
    """Return the settings with the imported switches. Raises ExportRefused."""
    try:
        return settings.with_overrides(choices.privacy or {})
    except ValidationError as wrong:
        first = wrong.errors()[0]
        field = ".".join(("preference", "privacy", *map(str, first["loc"])))
        raise ExportRefused(f"{field}: {first['msg']}") from wrong


def _keep_spent(exported: ReaderExport, database: Database) -> None:
    """Store what belongs to the charges: drawn reports, codebooks, uploads and gradients."""
    tables = exported.tables
    for drawn in tables.drawn_report:
        database.write(
            "INSERT INTO drawn_report (mechanism, book, value, report, drawn_at) VALUES (?, ?, ?, ?, ?) "
            "ON CONFLICT DO NOTHING",
            (drawn.mechanism, drawn.book, drawn.value, json.dumps(drawn.report), drawn.drawn_at),
        )
    for meaning in tables.report_meaning:
        database.write(
            "INSERT INTO report_meaning (meaning, first_at) VALUES (?, ?) ON CONFLICT DO NOTHING",
            (meaning.meaning, meaning.first_at),
        )
    for upload in tables.round_upload:
        database.write(
            "INSERT INTO round_upload (round, payload_sha256, bound_at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
            (upload.round, upload.payload_sha256, upload.bound_at),
        )
    for view in tables.view_round:
        database.write(
            "INSERT INTO view_round (round, view, clip, sigma, at) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
            (view.round, view.view, view.clip, view.sigma, view.at),
        )


def _keep_reading(exported: ReaderExport, stores: DeviceStores, now: datetime) -> None:
    tables, database, touched = exported.tables, stores.database, exported.touched
    missing = set(stores.news.missing(sorted(touched)))
    stores.news.put_cards([row.card for row in tables.news if row.id in missing], now)
    lacking = set(stores.news.without_body(sorted(touched)))
    stores.news.put_bodies({row.news_id: row.body for row in tables.body if row.news_id in lacking})
    for click in tables.click:
        database.write(
            "INSERT INTO click (news_id, feed_id, at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
            (click.news_id, click.feed_id, click.at),
        )
    for shown in tables.impression:
        database.write(
            "INSERT INTO impression (feed_id, news_id, position, at, popularity, viewed_at) VALUES (?, ?, ?, ?, ?, ?) "
            "ON CONFLICT DO NOTHING",
            (shown.feed_id, shown.news_id, shown.position, shown.at, shown.popularity, shown.viewed_at),
        )
    stores.read_marks.take_over([(one.news_id, one.at, one.batch) for one in tables.read_story])
    for rule in tables.mute_rule:
        try:
            stores.mute_rules.put(rule.field, rule.kind, rule.pattern, from_us(rule.at))
        except ValueError as refused:
            raise ExportRefused(f"tables.mute_rule: {refused}") from refused
    for imported in sorted(tables.reaction, key=lambda reaction: reaction.at):
        opposite = {"like": "less", "less": "like"}.get(imported.kind)
        later = "SELECT count(*) FROM reaction WHERE news_id = ? AND kind = ? AND at > ?"
        if database.number(later, (imported.news_id, opposite, imported.at)):
            continue
        database.write("DELETE FROM reaction WHERE news_id = ? AND kind = ?", (imported.news_id, opposite))
        database.write(
            "INSERT INTO reaction (news_id, kind, at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
            (imported.news_id, imported.kind, imported.at),
        )
    # One by one: the store knows which vectors have the release's width and skips the others.
    for row in tables.vector:
        if row.news_id in touched:
            vector = np.frombuffer(row.content, dtype="<f4")[None]
            stores.news.put_vectors([row.news_id], vector, row.encoder, of_clicked=True)


def _put_searches(exported: ReaderExport, stores: DeviceStores) -> None:
    found = exported.views.searches
    both = {one.words for one in found.search} | {one.words for one in stores.searches.saved()}
    if found.search and len(both) > SAVED_LIMIT:
        raise ExportRefused(
            f"views.searches.search: {SAVED_LIMIT} searches can be saved, and with those here there would be "
            f"{len(both)}: delete some first"
        )
    stores.moved_searches.put(found.model_dump(mode="json"))
