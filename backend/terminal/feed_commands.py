"""The commands `ownfeed feeds ...`: followed feeds and their last answers.

They work while the server runs.
"""

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
    from backend.settings import BackendSettings

feeds_app = typer.Typer(help="The feeds that are followed: find, add, list, change, remove, restore; OPML in and out.")
Url = Annotated[str, typer.Argument(help="The feed's address.")]


@feeds_app.command("list")
def list_(
    data_dir: BackendDir = None,
    as_json: AsJson = False,
    removed: Annotated[bool, typer.Option("--removed", help="Those that `restore` brings back.")] = False,
) -> None:
    """List every feed, when it last answered, and its errors."""
    followed = _followed(data_dir)
    feeds = followed.removed() if removed else followed.all()
    if as_json:
        typer.echo(json.dumps([_as_json(feed) for feed in feeds]))
        return
    for feed in feeds:
        named = f"{feed.shown}  " if feed.shown != feed.url else ""
        typer.echo(f"{named}{feed.url}\n    {state_of(feed)}{settings_of(feed)}")
    if not feeds and not removed:
        says.print("No feed is followed. `ownfeed feeds add`, or `ownfeed read`, follows one.", markup=False)


@feeds_app.command()
def add(
    sources: Annotated[
        list[str],
        typer.Argument(help="OPML files, and addresses of feeds, sites, channels or profiles (r/NAME, @USER@HOST)."),
    ],
    data_dir: BackendDir = None,
    section: Annotated[
        str | None, typer.Option(help="Of all their news; without it, a story's section comes from what it is about.")
    ] = None,
    pictures: Annotated[
        bool, typer.Option("--pictures", help="Their publishers' own pictures may be fetched and shown.")
    ] = False,
    folder: Annotated[
        list[str] | None, typer.Option(help="Into this folder; once for each, from the outermost in.")
    ] = None,
    allow_network: Annotated[
        list[str] | None,
        typer.Option(help="A network that is not public and feeds may be looked for in all the same: 127.0.0.0/8."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Follow feeds from now on. The server reads each within a quarter of a minute.

    Where a page names several feeds, you choose. What can't be followed is listed, and the exit status is then 1.
    """
    from backend.news.public_addresses import networks
    from backend.news.sections import chosen_section
    from backend.setup.own_feeds import follow_all
    from backend.terminal.feed_sources import named_feeds, print_refused

    followed, settings = _followed(data_dir), _settings(data_dir)
    allowed = networks((*settings.feed_networks, *(allow_network or ())))
    name = None if section is None else chosen_section(section)
    known = [feed.url for feed in followed.all()]
    found = named_feeds(sources, known=known, allowed=allowed, ask=False if as_json else None)
    wanted = [
        replace(one, section=name or one.section, folder=tuple(folder) if folder else one.folder) for one in found.feeds
    ]
    newly = follow_all(followed, wanted, pictures=pictures)
    found.refused += newly.refused
    if as_json:
        choices = {each.detail: [one.to_json() for one in each.found] for each in found.choices}
        refused = [each._asdict() for each in found.refused]
        typer.echo(json.dumps({"added": newly.added, "refused": refused, "choices": choices}))
        failed = bool(refused or choices)
    else:
        typer.echo(f"{newly.added} added")
        failed = print_refused(found)
    if failed:
        raise typer.Exit(1)


@feeds_app.command("section")
def section_(
    url: Url,
    name: Annotated[str | None, typer.Argument(help="None: by what each story is about.")] = None,
    data_dir: BackendDir = None,
) -> None:
    """Choose a section for all of a feed's articles. The feed is read again at once."""
    from backend.news.sections import chosen_section

    _followed(data_dir).sort_into(url, None if name is None else chosen_section(name), datetime.now(UTC))


@feeds_app.command()
def rename(
    url: Url,
    title: Annotated[str, typer.Argument(help="Yours, by which its stories appear; '' for the feed's own.")],
    data_dir: BackendDir = None,
) -> None:
    """Set your own title for a feed."""
    _followed(data_dir).rename(url, title)


@feeds_app.command("folder")
def folder_(
    url: Url,
    names: Annotated[
        list[str] | None, typer.Argument(help="The folder's names from the outermost in; none: out of all folders.")
    ] = None,
    data_dir: BackendDir = None,
) -> None:
    """Put a feed into a folder, which OPML keeps."""
    _followed(data_dir).move_to(url, names or ())


@feeds_app.command("rename-folder")
def rename_folder(
    names: Annotated[list[str], typer.Argument(help="The folder's names from the outermost in.")],
    to: Annotated[list[str] | None, typer.Option(help="Its new name; once for each, from the outermost in.")] = None,
    data_dir: BackendDir = None,
) -> None:
    """Move all feeds of a folder, and of those in it, to another; without --to, out of it."""
    typer.echo(f"{_followed(data_dir).rename_folder(names, to or ())} feeds moved")


@feeds_app.command("certificate")
def certificate_(
    url: Url,
    checked: Annotated[
        bool, typer.Option("--check/--ignore", help="Ignored, anyone on the way can read and replace the feed.")
    ],
    data_dir: BackendDir = None,
) -> None:
    """Read a feed even if its server's certificate is not valid, or check it again."""
    _followed(data_dir).check_certificate(url, checked, datetime.now(UTC))


@feeds_app.command("proxy")
def proxy_(
    url: Url,
    proxy: Annotated[str | None, typer.Argument(help="http://HOST:PORT; none: read it directly.")] = None,
    data_dir: BackendDir = None,
) -> None:
    """Read a feed through an HTTP proxy.

    The proxy looks up host names, so it, and no longer this machine, decides which addresses can be reached.
    """
    _followed(data_dir).read_through(url, proxy, datetime.now(UTC))


@feeds_app.command()
def refresh(
    url: Annotated[str | None, typer.Argument(help="The feed's address; none: all feeds.")] = None,
    data_dir: BackendDir = None,
) -> None:
    """Have the running server read a feed, or all, soon. Pauses that a host requires are kept."""
    _followed(data_dir).ask_now(datetime.now(UTC), url)


@feeds_app.command("pictures")
def pictures_(
    url: Url,
    allowed: Annotated[bool, typer.Option("--allow/--withdraw", help="Withdrawn, they leave every device.")],
    data_dir: BackendDir = None,
) -> None:
    """Allow or forbid that a feed's own pictures are fetched and shown to every reader."""
    _followed(data_dir).allow_pictures(url, allowed)


@feeds_app.command("full-text")
def full_text(
    url: Url,
    wanted: Annotated[bool, typer.Option("--on/--off", help="Off: new stories have what the feed says.")],
    data_dir: BackendDir = None,
) -> None:
    """Fetch the whole text of each new story of a feed from its page, whether or not anybody reads it."""
    _followed(data_dir).want_full_text(url, wanted)


@feeds_app.command()
def pause(url: Url, data_dir: BackendDir = None) -> None:
    """Stop reading a feed until it is resumed; its articles stay."""
    _followed(data_dir).pause(url)


@feeds_app.command()
def resume(url: Url, data_dir: BackendDir = None) -> None:
    """Resume a feed at once, as if it had never failed."""
    _followed(data_dir).resume(url, datetime.now(UTC))


@feeds_app.command()
def remove(url: Url, data_dir: BackendDir = None) -> None:
    """Stop following a feed; its articles stay until they expire. For 30 days `restore` undoes it."""
    _followed(data_dir).remove(url, datetime.now(UTC))


@feeds_app.command()
def restore(url: Url, data_dir: BackendDir = None) -> None:
    """Follow a removed feed again, with its title, folder and section."""
    _followed(data_dir).restore(url, datetime.now(UTC))


@feeds_app.command()
def export(
    to: Annotated[Path, typer.Argument(dir_okay=False, help="The OPML file to write; it must not be there yet.")],
    data_dir: BackendDir = None,
) -> None:
    """Write all feeds to an OPML file for other feed readers, with titles and folders."""
    from backend.news.opml import Subscription, write_opml

    feeds = _followed(data_dir).all()
    listed = [
        Subscription(feed.url, feed.title or feed.name, feed.folder, section=feed.section, site=feed.site)
        for feed in sorted(feeds, key=lambda feed: feed.added_at)
    ]
    with to.open("xb") as file:
        file.write(write_opml(listed, "Feeds followed by Ownfeed"))
    typer.echo(f"{len(feeds)} feeds written to {to}")


def state_of(feed: FollowedFeed) -> str:
    """One line: when it last answered, what its last document gave, when it is asked again, and why that is delayed."""
    last = "never answered" if feed.fetched_at is None else f"last answered {feed.fetched_at:%Y-%m-%d %H:%M} UTC"
    if feed.answer is not None:
        last += f"; {feed.answer}"
    if feed.removed_at is not None:
        return f"removed {feed.removed_at:%Y-%m-%d}; {last}"
    if feed.ended:
        return f"ended; {last}: {feed.error}"
    if feed.paused:
        return f"paused; {last}"
    if feed.failures:
        times = "once" if feed.failures == 1 else f"{feed.failures:,} times"
        return f"{last}; failed {times}, asked again at {feed.due_at:%H:%M} UTC: {feed.error}"
    return last if feed.fetched_at is None else f"{last}; asked again at {feed.due_at:%H:%M} UTC"


def settings_of(feed: FollowedFeed) -> str:
    """The settings that its reader has changed, each after a semicolon."""
    changed = [
        f"in {' / '.join(feed.folder)}" if feed.folder else "",
        f"section {feed.section}" if feed.section else "",
        "pictures allowed" if feed.pictures else "",
        "full texts" if feed.full_text else "",
        feed.full_text_error or "",
        "CERTIFICATE NOT CHECKED" if feed.unverified else "",
        f"read through {proxy_shown(feed.proxy)}" if feed.proxy else "",
    ]
    return "".join(f"; {each}" for each in changed if each)


def proxy_shown(proxy: str) -> str:
    """A proxy's address without a password."""
    scheme, _, rest = proxy.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}"


def _as_json(feed: FollowedFeed) -> dict[str, object]:
    return {
        "key": feed.key,
        "url": feed.url,
        "title": feed.title,
        "name": feed.name,
        "site": feed.site,
        "folder": list(feed.folder),
        "last_answered": feed.fetched_at and feed.fetched_at.isoformat(),
        "due": feed.due_at.isoformat(),
        "paused": feed.paused,
        "ended": feed.ended,
        "removed": feed.removed_at and feed.removed_at.isoformat(),
        "certificate_checked": not feed.unverified,
        "proxy": feed.proxy and proxy_shown(feed.proxy),
        "section": feed.section,
        "pictures": feed.pictures,
        "full_text": feed.full_text,
        "full_text_error": feed.full_text_error,
        "failures": feed.failures,
        "error": feed.error,
        "answer": None if feed.answer is None else str(feed.answer),
        "entries": feed.entries,
        "taken": feed.taken,
        "refused": feed.refused,
        "refusals": list(feed.refusals),
    }


def _followed(data_dir: Path | None) -> FollowedFeeds:
    """The feeds of a server's folder; by default those of `ownfeed read`, if its folder exists."""
    from backend.news.followed_feeds import FollowedFeeds

    return FollowedFeeds(_engine(data_dir))


def _engine(data_dir: Path | None) -> Engine:
    from backend.db.engine import migrate, open_engine

    settings = _settings(data_dir)
    migrate(settings.database_url)
    return open_engine(settings.database_url)


def _settings(data_dir: Path | None) -> BackendSettings:
    from backend.settings import load_settings
    from backend.setup.own_feeds import reader_folder

    chosen = reader_folder() if data_dir is None else data_dir
    if (chosen / "backend").is_dir():
        chosen = chosen / "backend"
    settings = load_settings(**({"data_dir": chosen} if data_dir is not None or chosen.is_dir() else {}))
    if not settings.data_dir.is_dir():
        raise FileNotFoundError(f"There is no folder {settings.data_dir}; choose one with --data-dir.")
    return settings
