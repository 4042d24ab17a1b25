"""The clean-up: what is deleted, what never is, what time that jumps does, and how a tool comes
back."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st
from stores import store_of

from hotset.errors import BadInput, NotFound, StoreFailed
from hotset.nouns.tool import Life, OriginKind, ToolStatus, ToolTier
from hotset.sources.tools.found.created import CreatedTools, create
from hotset.sources.tools.graph import ToolGraph
from hotset.sources.tools.registry import DEFAULTS, Registry, decay
from hotset.sources.tools.sweep import CYCLE, Deletions, ToolPlaces, restore, summary, sweep
from hotset.testing import Clock

NOW = 1_800_000_000.0
TTL = DEFAULTS.ttl_seconds
HOUR, DAY, YEAR = 3600.0, 86_400.0, 31_557_600.0
CODE = 'def {name}(text: str) -> str:\n    """Tidies a text up.\u00e4"""\n    return text\n'


class Killed(BaseException):
    """The process ends here."""


@dataclass
class House:
    """A project's tools, whose process can be killed and started again, and whose clock can be
    moved."""

    folder: Path
    clock: Clock
    contents: dict[str, bytes] = field(default_factory=dict)
    dies_at: int | None = None

    def __post_init__(self) -> None:
        self.start()

    def start(self) -> None:
        self.dies_at, self.at = None, 0
        self.created = self.folder / "created"
        registry, graph = (
            Registry(self.folder, self.clock),
            ToolGraph(store_of(self.folder), self.clock),
        )
        self.places = ToolPlaces(
            registry,
            graph,
            Mortal(CreatedTools(self.created), self.step),
            Deletions(store_of(self.folder)),
            self.keep,
            self.fetch,
        )

    def stop(self) -> None:
        self.places.registry.close()
        self.places.graph.close()

    def keep(self, name: str, code: bytes) -> str:
        self.step()
        id = hashlib.sha256(code).hexdigest()
        self.contents[id] = code
        self.step()
        return id

    def fetch(self, id: str) -> bytes:
        return self.contents[id]

    def step(self) -> None:
        self.at += 1
        if self.at == self.dies_at:
            raise Killed

    def write(self, *names: str) -> None:
        for name in names:
            create(self.created, name, CODE.format(name=name))
            self.places.registry.born(f"created__{name}", OriginKind.CREATED)

    def files(self) -> set[str]:
        return {path.stem for path in self.created.glob("*.py")}

    def lives(self) -> dict[str, Life]:
        return dict(self.places.registry.lives())

    def sweep(self):
        return sweep(self.places, self.clock())

    def sweep_for(self, seconds: float, every: float = HOUR) -> list[str]:
        """As in the background, but less often: what went."""
        gone: list[str] = []
        for _ in range(int(seconds / every)):
            self.clock.advance(every)
            gone += self.sweep().deleted
        return gone


@dataclass
class Mortal:
    """Files that are touched by a process that may die before and after."""

    files: CreatedTools
    step: Callable[[], None]

    def read(self, name: str) -> bytes | None:
        self.step()
        return self.files.read(name)

    def remove(self, name: str) -> bytes:
        self.step()
        removed = self.files.remove(name)
        self.step()
        return removed

    def put_back(self, name: str, code: bytes) -> None:
        self.files.put_back(name, code)


@pytest.fixture
def house(tmp_path):
    made = House(tmp_path / "tools", Clock(NOW))
    yield made
    made.stop()


# The life of a tool


def test_a_tool_that_nobody_uses_falls_asleep_and_goes_a_day_later(house):
    house.write("tidy")
    house.sweep()

    assert house.sweep_for(6 * HOUR) == []
    assert house.lives()["created__tidy"].status is ToolStatus.INACTIVE
    assert house.sweep_for(TTL - HOUR) == []
    assert house.files() == {"tidy"}
    assert house.sweep_for(HOUR) == ["created__tidy"]
    assert (house.files(), house.lives()) == (set(), {})


def test_a_use_at_the_last_moment_rescues_a_tool(house):
    house.write("tidy")
    house.sweep()
    house.sweep_for(6 * HOUR + TTL - HOUR)
    house.places.registry.used("created__tidy", OriginKind.CREATED, 0.1)

    assert house.sweep_for(3 * HOUR) == []
    assert house.lives()["created__tidy"].status is ToolStatus.ACTIVE
    assert house.sweep_for(2 * DAY) == ["created__tidy"]


def test_the_hours_of_a_night_count_and_a_restart_changes_nothing(house):
    house.write("tidy")
    house.sweep()
    house.sweep_for(8 * HOUR)
    house.stop()
    house.clock.advance(16 * HOUR)
    house.start()

    assert house.sweep().notes == ()
    assert house.sweep_for(6 * HOUR) == ["created__tidy"]


def test_what_went_is_gone_from_the_graph_too(house):
    house.write("tidy", "count")
    house.places.graph.used_together(["created__count", "created__tidy"])
    house.places.graph.depends("created__count", ["created__tidy"])
    house.places.registry.pin("created__count", OriginKind.CREATED)
    house.sweep()
    house.sweep_for(31 * HOUR)

    assert house.files() == {"count"}
    assert house.places.graph.neighbours("created__count") == ()
    assert "created__tidy" not in house.places.graph.tools()


@pytest.mark.row("D6")
def test_only_what_an_agent_wrote_is_deleted(house, tmp_path):
    house.write("tidy")
    for origin in (OriginKind.SERVER, OriginKind.SKILL, OriginKind.CALLABLE):
        house.places.registry.born(f"{origin}__tidy", origin)
    house.places.registry.born("tidy", OriginKind.SERVER)
    house.sweep()
    house.places.registry.pin("created__tidy", OriginKind.CREATED)

    assert house.sweep_for(3 * DAY) == []
    assert house.files() == {"tidy"}
    assert len(house.lives()) == 5


@pytest.mark.parametrize(
    "name",
    [
        "../precious",
        "created__../precious",
        "/precious",
        "created__precious.py",
        "..",
        "",
        "x" * 300,
    ],
)
def test_nothing_outside_the_folder_is_touched_whatever_the_registry_says(house, name):
    house.folder.joinpath("precious.py").write_text("mine")
    house.write("tidy")
    house.places.registry.pin("created__tidy", OriginKind.CREATED)
    house.places.registry.born(name, OriginKind.CREATED)
    house.sweep()
    house.sweep_for(2 * DAY)

    assert house.folder.joinpath("precious.py").read_text() == "mine"
    assert (house.files(), list(house.lives())) == ({"tidy"}, ["created__tidy"])


def test_a_link_in_the_folder_is_neither_followed_nor_deleted(house, tmp_path):
    house.write("tidy")
    precious = tmp_path / "precious.py"
    precious.write_text("mine")
    (house.created / "tidy.py").unlink()
    (house.created / "tidy.py").symlink_to(precious)
    house.sweep()
    house.sweep_for(2 * DAY)

    assert precious.read_text() == "mine"
    assert (house.created / "tidy.py").is_symlink()
    assert house.contents == {}


# Few at a time, and never by a jump


def test_one_tool_goes_in_a_sweep_or_one_in_a_hundred(house):
    house.write(*(f"tidy_{at:03}" for at in range(5)))
    with house.places.registry.changing() as entries:
        for at in range(245):
            entries.put(Life(f"created__other_{at}", NOW, OriginKind.CREATED, pinned=True))
            entries.put(
                Life(f"server__other_{at}", NOW, OriginKind.SERVER)
            )  # of those that cannot go nobody counts a hundredth
    house.sweep()
    house.sweep_for(6 * HOUR + TTL - HOUR)
    house.clock.advance(HOUR)

    first = house.sweep()
    assert (first.deleted, first.waiting) == (("created__tidy_000", "created__tidy_001"), 3)
    assert [house.sweep().deleted for _ in range(3)] == [
        ("created__tidy_002", "created__tidy_003"),
        ("created__tidy_004",),
        (),
    ]


@pytest.mark.row("D3")
@pytest.mark.parametrize("jump", [10 * YEAR, -10 * YEAR, 1.1 * DAY, -1.1 * DAY])
def test_a_clock_that_jumps_deletes_nothing_and_gives_every_tool_its_whole_time(house, jump):
    house.write(*(f"tidy_{at}" for at in range(5)))
    house.sweep()
    house.sweep_for(20 * HOUR)
    house.clock.advance(jump)
    told = house.sweep()

    assert told.deleted == ()
    assert "nothing is deleted now" in told.notes[0]
    assert house.sweep_for(23 * HOUR) == []
    assert len(house.files()) == 5


def test_a_clock_that_is_put_right_again_leaves_no_trace(house):
    house.write("tidy")
    house.sweep()
    house.places.registry.used("created__tidy", OriginKind.CREATED, 0.1)
    before = house.lives()
    for jump in (10 * YEAR, -10 * YEAR):
        house.clock.advance(jump)
        house.sweep()

    assert house.lives() == before


def test_who_comes_back_after_a_long_absence_finds_everything_and_has_a_day(house):
    house.write("tidy")
    house.sweep()
    house.sweep_for(20 * HOUR)
    house.stop()
    house.clock.advance(90 * DAY)
    house.start()

    assert "nobody swept" in house.sweep().notes[0]
    assert house.sweep_for(23 * HOUR) == []
    assert house.sweep_for(2 * HOUR) == ["created__tidy"]


@settings(max_examples=15, deadline=None)
@given(
    jumps=st.lists(
        st.sampled_from([CYCLE, HOUR, 8 * HOUR, 2 * DAY, -2 * DAY, -HOUR, 10 * YEAR, -10 * YEAR]),
        max_size=8,
    )
)
def test_whatever_time_does_one_tool_goes_in_a_sweep_at_most_and_comes_back(
    tmp_path_factory, jumps
):
    house = House(tmp_path_factory.mktemp("tools"), Clock(NOW))
    house.write("tidy", "count", "sort")
    house.sweep()
    gone: list[str] = []
    for jump in jumps:
        house.clock.advance(jump)
        swept = house.sweep()
        assert len(swept.deleted) <= 1
        gone += swept.deleted
    assert house.files() == {"tidy", "count", "sort"} - {
        name.removeprefix("created__") for name in gone
    }
    for name in gone:
        restore(house.places, name, house.clock())
    assert house.files() == {"tidy", "count", "sort"}
    house.stop()


def test_the_first_sweep_ever_gives_what_sleeps_already_its_whole_time(house):
    house.write("tidy")
    with house.places.registry.changing() as entries:
        life = entries.get("created__tidy")
        entries.put(
            Life(life.name, 0.0, life.origin, status=ToolStatus.INACTIVE, inactive_since=1.0)
        )

    assert house.sweep().deleted == ()
    assert house.sweep_for(23 * HOUR) == []
    assert house.sweep_for(HOUR) == ["created__tidy"]


def test_a_sweep_of_nothing_writes_nothing_and_one_without_news_neither(house):
    assert house.sweep().deleted == ()
    assert not house.places.registry.path.exists()
    house.write("tidy")
    house.sweep()
    before = house.places.registry.path.stat()
    house.sweep_for(30 * CYCLE, every=CYCLE)

    assert house.places.registry.path.stat() == before


# What was deleted comes back


@pytest.mark.row("D6")
def test_a_deleted_tool_comes_back_byte_for_byte_with_its_record(house):
    house.write("tidy")
    house.places.registry.used("created__tidy", OriginKind.CREATED, 0.5)
    before = (house.created / "tidy.py").read_bytes()
    house.sweep()
    house.sweep_for(32 * HOUR)
    assert house.files() == set()
    house.stop()
    house.start()
    life = restore(house.places, "created__tidy", house.clock())

    assert (house.created / "tidy.py").read_bytes() == before
    assert (life.calls, life.seconds, life.status) == (1, 0.5, ToolStatus.ACTIVE)
    assert decay(life, house.clock()) == 1.0
    assert house.sweep_for(24 * HOUR) == []
    with pytest.raises(NotFound, match="none was"):
        restore(house.places, "created__tidy", house.clock())


def test_a_tool_that_stands_in_its_place_is_not_overwritten(house):
    house.write("tidy")
    house.sweep()
    house.sweep_for(31 * HOUR)
    create(house.created, "tidy", CODE.format(name="tidy").replace("Tidies", "Cleans"))
    house.places.registry.born("created__tidy", OriginKind.CREATED)

    with pytest.raises(BadInput, match="another tool created__tidy"):
        restore(house.places, "created__tidy", house.clock())
    house.sweep_for(31 * HOUR)
    assert [
        b"Cleans" in house.fetch(kept.content) for kept in house.places.deletions.all().values()
    ] == [True]
    assert [
        b"Tidies" in house.fetch(kept.earlier[0]) for kept in house.places.deletions.all().values()
    ] == [True]


def test_who_asks_for_a_tool_that_was_not_deleted_hears_which_were(house):
    house.write("tidy")
    house.sweep()
    house.sweep_for(31 * HOUR)

    with pytest.raises(NotFound, match="these were: created__tidy"):
        restore(house.places, "created__tydy", house.clock())


def test_a_tool_whose_content_cannot_be_kept_stays_and_that_is_told(house, tmp_path):
    def full(name: str, code: bytes) -> str:
        raise StoreFailed("the disk is full")

    house.write("tidy", "count")
    house.sweep()
    house.places = ToolPlaces(
        house.places.registry,
        house.places.graph,
        house.places.written,
        house.places.deletions,
        full,
        house.fetch,
    )
    assert house.sweep_for(31 * HOUR) == []
    swept = house.sweep()

    assert (swept.deleted, swept.waiting, house.files()) == ((), 2, {"tidy", "count"})
    assert swept.notes == (
        "created__count has expired and cannot be deleted yet: the disk is full",
    )


def test_a_tool_that_cannot_be_removed_is_told_each_time_and_kept_once(house):
    class Stuck(CreatedTools):
        def remove(self, name: str) -> bytes:
            raise StoreFailed("the folder is read-only")

    kept: list[str] = []

    def keep(name: str, code: bytes) -> str:
        kept.append(name)
        return house.keep(name, code)

    house.write("tidy")
    house.sweep()
    places = house.places
    house.places = ToolPlaces(
        places.registry, places.graph, Stuck(house.created), places.deletions, keep, house.fetch
    )
    house.sweep_for(33 * HOUR)

    assert kept == ["created__tidy"]
    assert "the folder is read-only" in house.sweep().notes[0]
    assert (house.files(), list(house.lives())) == ({"tidy"}, ["created__tidy"])


@pytest.mark.parametrize("dies_at", range(1, 8))
def test_a_sweep_that_is_killed_anywhere_loses_nothing_and_is_finished_by_the_next(house, dies_at):
    house.write("tidy")
    house.places.graph.depends("created__tidy", ["git__log"])
    code = (house.created / "tidy.py").read_bytes()
    house.sweep()
    house.sweep_for(6 * HOUR + TTL - HOUR)
    house.clock.advance(HOUR)
    house.dies_at, house.at = dies_at, 0
    try:
        house.sweep()
        killed = False
    except Killed:
        killed = True
    house.start()

    assert killed == (dies_at < 7)
    assert code in [
        *house.contents.values(),
        *(path.read_bytes() for path in house.created.glob("*.py")),
    ]
    house.sweep()
    assert (house.files(), house.lives(), house.places.graph.edges()) == (set(), {}, ())
    restore(house.places, "created__tidy", house.clock())
    assert (house.created / "tidy.py").read_bytes() == code


def test_a_tool_that_is_used_while_its_content_is_being_kept_stays(house):
    house.write("tidy")
    house.sweep()
    house.sweep_for(6 * HOUR + TTL - HOUR)
    house.clock.advance(HOUR)
    kept = house.places.keep

    def used_meanwhile(name: str, code: bytes) -> str:
        with closing(Registry(house.folder, house.clock)) as other:
            other.used(name, OriginKind.CREATED, 0.1)
        return kept(name, code)

    places = ToolPlaces(
        house.places.registry,
        house.places.graph,
        house.places.written,
        house.places.deletions,
        used_meanwhile,
        house.fetch,
    )
    assert sweep(places, house.clock()).deleted == ()
    assert house.files() == {"tidy"}
    assert house.lives()["created__tidy"].calls == 1


# How things stand


@pytest.mark.row("D7")
def test_the_summary_tells_who_lives_who_sleeps_and_who_goes_next():
    made = partial(Life, born=NOW - DAY, origin=OriginKind.CREATED)
    asleep = partial(made, status=ToolStatus.INACTIVE)
    active, hot = made("active", calls=1, last_used=NOW - HOUR), made("hot", calls=9, last_used=NOW)
    late, soon = (
        asleep("late", inactive_since=NOW - HOUR),
        asleep("soon", inactive_since=NOW - 22 * HOUR),
    )
    pinned, unswept = made("pinned", pinned=True), made("unswept")
    server = Life("server", NOW - 9 * DAY, calls=1, last_used=NOW - 9 * DAY)
    told = summary([active, late, server, pinned, unswept, soon, hot], NOW, most=4)

    assert (told.active, told.inactive, told.pinned, told.next_to_evict) == (3, 4, 1, "soon")
    assert (told.created, told.capacity) == (6, 50)
    assert [each.name for each in told.candidates] == ["soon", "late", "unswept", "active"]
    assert [(each.name, each.ttl_left) for each in told.inactive_tools] == [
        ("soon", 2 * HOUR),
        ("late", 23 * HOUR),
        ("unswept", TTL),
        ("server", None),
    ]
    assert (told.candidates[3].tier, told.candidates[3].status) == (ToolTier.HOT, ToolStatus.ACTIVE)
    assert summary([], NOW).next_to_evict is None
