"""The commands `ownfeed feeds ...`: who is followed, and when each last answered; also while the server runs."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from backend.terminal.options import AsJson, BackendDir, says

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from backend.news.followed_feeds import FollowedFeed, FollowedFeeds

feeds_app = typer.Typer(help="The feeds that are followed: list, add, pause, remove, and OPML out.")
Url = Annotated[str, typer.Argument(help="The feed's address.")]


@feeds_app.command("list")
def list_(data_dir: BackendDir = None, as_json: AsJson = False) -> None:
    """Every feed, when it last answered, and what is wrong with it."""
    feeds = _followed(data_dir).all()
    if as_json:
        typer.echo(json.dumps([_as_json(feed) for feed in feeds]))
        return
    for feed in feeds:
        own = f"; section {feed.section}" if feed.section else ""
        shown = "; pictures allowed" if feed.pictures else ""
        typer.echo(f"{feed.url}\n    {state_of(feed)}{own}{shown}")
    if not feeds:
        says.print("No feed is followed. `ownfeed feeds add`, or `ownfeed read`, follows one.", markup=False)


@feeds_app.command()
def add(
    sources: Annotated[list[str], typer.Argument(help="Addresses of feeds, and OPML files.")],
    data_dir: BackendDir = None,
    section: Annotated[
        str | None, typer.Option(help="Of all their news; without it, a story's section comes from what it is about.")
    ] = None,
    pictures: Annotated[
        bool, typer.Option("--pictures", help="Their publishers' own pictures may be fetched and shown.")
    ] = False,
) -> None:
    """Follow feeds from now on. The server reads each at its next look, within a quarter of a minute."""
    from backend.own_feeds import follow_all, subscriptions
    from backend.sections.taxonomy import chosen_section

    wanted = subscriptions(sources)
    if section is not None:
        name = chosen_section(section)
        wanted = [replace(one, section=name) for one in wanted]
    added = follow_all(_followed(data_dir), wanted, pictures=pictures)
    typer.echo(f"{added} added")


@feeds_app.command("section")
def section_(
    url: Url,
    name: Annotated[str | None, typer.Argument(help="None: by what each story is about.")] = None,
    data_dir: BackendDir = None,
) -> None:
    """Choose a section for all of a feed's news. It is read again at once."""
    from backend.sections.taxonomy import chosen_section

    _followed(data_dir).sort_into(url, None if name is None else chosen_section(name), datetime.now(UTC))


@feeds_app.command("pictures")
def pictures_(
    url: Url,
    allowed: Annotated[bool, typer.Option("--allow/--withdraw", help="Withdrawn, they leave every device.")],
    data_dir: BackendDir = None,
) -> None:
    """Let a feed's publisher's own pictures be fetched and shown to every reader, or no longer."""
    _followed(data_dir).allow_pictures(url, allowed)


@feeds_app.command()
def pause(url: Url, data_dir: BackendDir = None) -> None:
    """Read a feed no more until it is resumed; its news stay."""
    _followed(data_dir).pause(url)


@feeds_app.command()
def resume(url: Url, data_dir: BackendDir = None) -> None:
    """Go on with a feed, at once, as if it had never failed."""
    _followed(data_dir).resume(url, datetime.now(UTC))


@feeds_app.command()
def remove(url: Url, data_dir: BackendDir = None) -> None:
    """Follow a feed no more; its news stay until they are old."""
    _followed(data_dir).remove(url)


@feeds_app.command()
def export(
    to: Annotated[Path, typer.Argument(dir_okay=False, help="The OPML file to write; it must not be there yet.")],
    data_dir: BackendDir = None,
) -> None:
    """Write an OPML file of all feeds, for any other feed reader."""
    from backend.opml import Subscription, write_opml

    feeds, names = _followed(data_dir).all(), _names(_engine(data_dir))
    listed = [Subscription(feed.url, names.get(feed.url, ""), feed.section or "") for feed in feeds]
    with to.open("xb") as file:
        file.write(write_opml(listed, "Feeds followed by Ownfeed"))
    typer.echo(f"{len(feeds)} feeds written to {to}")


def state_of(feed: FollowedFeed) -> str:
    """One line: when it last answered, and what holds it up."""
    last = "never answered" if feed.fetched_at is None else f"last answered {feed.fetched_at:%Y-%m-%d %H:%M} UTC"
    if feed.paused:
        return f"paused; {last}"
    if feed.failures:
        times = "once" if feed.failures == 1 else f"{feed.failures:,} times"
        return f"{last}; failed {times}, asked again at {feed.due_at:%H:%M} UTC: {feed.error}"
    return last


def _as_json(feed: FollowedFeed) -> dict[str, object]:
    return {
        "url": feed.url,
        "last_answered": feed.fetched_at and feed.fetched_at.isoformat(),
        "due": feed.due_at.isoformat(),
        "paused": feed.paused,
        "section": feed.section,
        "pictures": feed.pictures,
        "failures": feed.failures,
        "error": feed.error,
    }


def _followed(data_dir: Path | None) -> FollowedFeeds:
    """The feeds of a backend's folder, or of what `ownfeed read` keeps: by default its folder, if there is one."""
    from backend.news.followed_feeds import FollowedFeeds

    return FollowedFeeds(_engine(data_dir))


def _names(engine: Engine) -> dict[str, str]:
    """What feeds call themselves, by address: the publisher of the last that came of each; none before any did."""
    from sqlalchemy import func, select

    from backend.db.engine import reading
    from backend.db.tables import FeedRow, NewsRow

    last = select(func.max(NewsRow.number)).where(NewsRow.source.in_(select(FeedRow.url))).group_by(NewsRow.source)
    query = select(NewsRow.source, NewsRow.publisher).where(NewsRow.number.in_(last))
    with reading(engine) as connection:
        return {url: name for url, name in connection.execute(query) if name}


def _engine(data_dir: Path | None) -> Engine:
    from backend.db.engine import migrate, open_engine
    from backend.own_feeds import reader_folder
    from backend.settings import load_settings

    chosen = reader_folder() if data_dir is None else data_dir
    if (chosen / "backend").is_dir():
        chosen = chosen / "backend"
    settings = load_settings(**({"data_dir": chosen} if data_dir is not None or chosen.is_dir() else {}))
    if not settings.data_dir.is_dir():
        raise FileNotFoundError(f"There is no folder {settings.data_dir}; name one with --data-dir.")
    migrate(settings.database_url)
    return open_engine(settings.database_url)
