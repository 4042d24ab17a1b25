"""The ledger: what was measured, what is estimated, and that the figures add up."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

from hotset.config import Config, load
from hotset.nouns.bill import Bill
from hotset.nouns.deposit import Billed
from hotset.nouns.message import Usage
from hotset.nouns.page import Chain, SessionId
from hotset.nouns.price import Price
from hotset.nouns.turn import Event
from hotset.nouns.window import Cause, Form
from hotset.runtime.keeper import Keeper
from hotset.runtime.machine import CallTally, Machine
from hotset.runtime.metrics import (
    Births,
    metrics,
    over_store,
    savings,
)
from hotset.runtime.watch import QUIET_SECONDS, Watch, event_of, raised_lately
from hotset.store.port import Store
from hotset.testing import RamStore
from hotset.testing.store_talk import StoreTalk, id_of, kept, shows
from hotset.upstream.http import HttpWire
from hotset.window.ledger import Account, Ledger, percentile, reconcile, turn_costs
from hotset.window.price import dollars
from hotset.window.repeats import Repeats

PRICE = Price(input=2.0, output=10.0)
PLAIN = Bill(
    "model",
    "anthropic",
    Usage(cache_read=800, cache_write=200),
    Usage(cache_read=3600, cache_write=400),
)

tokens = st.integers(0, 1_000_000)
usages = st.builds(Usage, tokens, tokens, tokens, st.integers(0, 10_000))
bills = st.builds(
    Bill,
    model=st.sampled_from(["one", "two"]),
    upstream=st.just("anthropic"),
    sent=usages,
    whole=usages,
    usage=usages,
    calls=st.integers(1, 3),
    faults=st.integers(0, 3),
    refaults=st.integers(0, 3),
    broke=st.sampled_from(["", "pays", "overflow"]),
    overhead_ms=st.floats(0, 100),
    session=st.sampled_from([SessionId("s1"), SessionId("s2"), SessionId("s3")]),
)


def ledger_of(*given: Bill, price: Price = PRICE) -> Ledger:
    ledger = Ledger(lambda _model, _upstream: price)
    for bill in given:
        ledger.add(bill)
    return ledger


def measured(usage: Usage, bill: Bill = PLAIN, **fields: object) -> Bill:
    return replace(bill, usage=usage, sent=replace(bill.sent, output=usage.output), **fields)  # type: ignore[arg-type]


def test_where_our_count_was_right_the_estimate_stands_as_it_is():
    account = ledger_of(measured(PLAIN.sent), measured(PLAIN.sent)).total()

    assert (account.measured.prompt, account.estimated.prompt) == (2000, 8000)
    assert account.measured.dollars == pytest.approx(2 * (800 * 0.1 + 200 * 1.25) * 2 / 1e6)
    assert account.estimated.dollars == pytest.approx(2 * (3600 * 0.1 + 400 * 1.25) * 2 / 1e6)
    assert account.saved.dollars == pytest.approx(
        account.estimated.dollars - account.measured.dollars
    )
    assert account.saved.tokens_pct == 75.0
    assert account.measured.cache_read_pct == 80.0


@given(st.integers(1, 40), st.integers(1, 40))
def test_an_error_of_our_count_that_is_the_same_everywhere_cancels_out(counted: int, ours: int):
    """However many tokens the provider counts for one of ours, the share that was saved is the
    same."""
    usage = Usage(cache_read=800 * counted, cache_write=200 * counted)
    sent = Usage(cache_read=800 * ours, cache_write=200 * ours)
    whole = Usage(cache_read=3600 * ours, cache_write=400 * ours)

    account = ledger_of(replace(PLAIN, usage=usage, sent=sent, whole=whole)).total()

    right = ledger_of(measured(PLAIN.sent)).total()
    assert account.saved.dollars_pct == pytest.approx(right.saved.dollars_pct, abs=0.01)
    assert account.saved.tokens_pct == pytest.approx(right.saved.tokens_pct, abs=0.01)


def course(
    parts: list[tuple[int, int, float]], step: int = 1, ratios: Sequence[float] = ()
) -> tuple[list[Bill], float]:
    """Turns that each add so many tokens to what is sent, so many to everything, and are counted so
    many times as high by the provider; `ratios` is by what our own count was multiplied at each
    turn. With them, the provider's count of everything."""
    bills, truth = [], 0.0
    sent = whole = 0
    counted = everything = 0.0
    for (shown, full, factor), ratio in zip(parts, ratios or [1.0] * len(parts), strict=True):
        read, whole_read = (int(ratio * each) // step * step for each in (sent, whole))
        usage_read = round(counted)
        sent, whole, counted, everything = (
            sent + shown,
            whole + full,
            counted + shown * factor,
            everything + full * factor,
        )
        truth += everything
        bills.append(
            Bill(
                "model",
                "anthropic",
                Usage(cache_read=read, cache_write=round(sent * ratio) - read),
                Usage(cache_read=whole_read, cache_write=round(whole * ratio) - whole_read),
                Usage(cache_read=usage_read, cache_write=round(counted) - usage_read),
            )
        )
    return bills, truth


factors = st.floats(0.5, 2.0)


@given(
    st.lists(
        st.tuples(st.integers(2000, 9000), st.integers(0, 30_000), factors), min_size=1, max_size=30
    ),
    st.sampled_from([1, 128]),
)
@pytest.mark.slow
def test_content_of_each_kind_is_counted_as_the_provider_counts_that_kind(
    parts: list[tuple[int, int, float]], step: int
):
    """One factor for all of it would be off by as much as the kinds differ."""
    bills, truth = course([(shown, shown + left, factor) for shown, left, factor in parts], step)

    account = ledger_of(*bills, price=replace(PRICE, step=step)).total()

    assert account.estimated.prompt == pytest.approx(truth, rel=0.06)


def test_a_count_that_is_calibrated_on_the_way_is_reconciled_all_the_same():
    parts = [(1000, 1000, 1.2), *[(500, 4000, 0.6), (800, 800, 1.1)] * 12]
    bills, truth = course(parts, ratios=[1.3 * 0.99**turn for turn in range(len(parts))])

    assert ledger_of(*bills).total().estimated.prompt == pytest.approx(truth, rel=0.1)


def test_where_the_provider_cached_nothing_sending_everything_would_not_have_been_cached_either():
    uncached = ledger_of(measured(Usage(input=1000))).total()

    assert uncached.estimated.prompt == 4000
    assert uncached.estimated.dollars == pytest.approx(4000 * 2 / 1e6)
    assert uncached.saved.dollars_pct == pytest.approx(75.0)


def test_half_of_the_expected_cache_hits_is_half_of_them_for_everything_too():
    account = reconcile(PLAIN.whole, Usage(cache_read=400, cache_write=600), PLAIN.sent)

    assert account == Usage(cache_read=1800, cache_write=2200)


def test_a_turn_that_could_hit_no_cache_says_nothing_about_those_that_could():
    """A session's first turn is often the only one that can be compared: the later ones had hidden
    calls."""
    account = reconcile(
        Usage(cache_read=3000, cache_write=1000), Usage(cache_write=550), Usage(cache_write=500)
    )

    assert account == Usage(cache_read=3300, cache_write=1100)


def test_a_turn_with_hidden_calls_is_paid_for_whole_and_teaches_nothing_about_our_count():
    """Its report is the sum of two calls: taken as one it would double the estimate of
    everything."""
    once = measured(PLAIN.sent)
    twice = measured(Usage(cache_read=1800, cache_write=250), calls=2, faults=1, refaults=1)

    account = ledger_of(once, twice).total()

    assert account.estimated.prompt == 8000
    assert account.measured.prompt == 1000 + 2050
    assert (
        account.calls,
        account.hidden_calls,
        account.faults_per_100,
        account.refaults_per_100,
    ) == (3, 1, 50.0, 50.0)
    assert account.retrieval_pct == 50.0


def test_long_prompts_are_priced_as_such_one_by_one():
    price = Price(
        input=2.0,
        output=10.0,
        write=1.0,
        read=1.0,
        long_prompt=5000,
        long_input=2.0,
        long_output=1.5,
    )
    short, long = measured(Usage(input=1000, output=10)), measured(Usage(input=9000, output=10))

    account = ledger_of(short, long, price=price).total()

    assert account.measured.dollars == pytest.approx(
        sum(dollars(price, each.usage) for each in (short, long))
    )


def test_output_is_paid_for_in_either_case_and_saves_nothing():
    usage = replace(PLAIN.sent, output=1000)
    bill = replace(measured(usage), whole=replace(PLAIN.whole, output=1000))

    assert ledger_of(bill).total().saved.dollars == pytest.approx(
        ledger_of(measured(PLAIN.sent)).total().saved.dollars
    )


def test_without_a_report_of_the_provider_s_nothing_counts():
    account = ledger_of(measured(Usage(output=5))).total()

    assert (
        account.turns,
        account.measured.dollars,
        account.estimated.dollars,
        account.saved.dollars_pct,
    ) == (0, 0, 0, 0)


@given(st.lists(bills, max_size=30))
@pytest.mark.slow
def test_the_sessions_of_a_ledger_add_up_to_its_total(given: list[Bill]):
    ledger = ledger_of(*given)
    total, each = ledger.total(), [ledger.of(session) for session in ledger.sessions]

    def summed(figure: str) -> float:
        return sum(_figure(account, figure) for account in each)

    for figure in (
        "turns",
        "calls",
        "faults",
        "refaults",
        "hidden_calls",
        "measured.prompt",
        "measured.output",
        "estimated.prompt",
    ):
        assert _figure(total, figure) == summed(figure)
    for figure in ("measured.dollars", "estimated.dollars", "saved.dollars"):
        assert _figure(total, figure) == pytest.approx(summed(figure))
    assert total.turns == sum(bill.usage.prompt > 0 for bill in given)
    assert sum(total.breaks.values()) == sum(
        bool(bill.broke) and bill.usage.prompt > 0 for bill in given
    )
    assert total.saved.dollars == pytest.approx(total.estimated.dollars - total.measured.dollars)
    assert total.measured.dollars == pytest.approx(
        sum(dollars(PRICE, bill.usage, bill.calls) for bill in given if bill.usage.prompt)
    )


@given(st.lists(bills, max_size=30))
@pytest.mark.slow
def test_a_ledger_that_holds_few_books_comes_to_the_same(given: list[Bill]):
    """Where a session's bills come one behind the other: one that is billed again after its book
    was closed gets another book."""
    given = sorted(given, key=lambda bill: str(bill.session))
    every, few = ledger_of(*given), Ledger(lambda _model, _upstream: PRICE, most=1)
    for bill in given:
        few.add(bill)

    assert len(few.sessions) <= 1
    for figure in (
        "turns",
        "calls",
        "faults",
        "hidden_calls",
        "measured.prompt",
        "measured.output",
        "estimated.prompt",
    ):
        assert _figure(few.total(), figure) == _figure(every.total(), figure)
    for figure in ("measured.dollars", "estimated.dollars", "saved.dollars", "overhead_ms_p95"):
        assert _figure(few.total(), figure) == pytest.approx(_figure(every.total(), figure))
    assert few.total().breaks == every.total().breaks
    assert few.total().models == every.total().models


def _figure(account: Account, named: str) -> float:
    value: object = account
    for name in named.split("."):
        value = getattr(value, name)
    assert isinstance(value, int | float)
    return value


@given(usages, usages, usages)
def test_a_reconciled_prompt_never_has_negative_parts_and_keeps_its_size(
    whole: Usage, told: Usage, ours: Usage
):
    usage = reconcile(whole, told, ours)

    assert min(usage.input, usage.cache_read, usage.cache_write) >= 0
    if told.prompt and ours.prompt:
        assert usage.prompt == pytest.approx(whole.prompt * told.prompt / ours.prompt, abs=2)


def test_percentiles_are_values_that_were_there():
    assert [percentile(range(1, 101), share) for share in (0.5, 0.95, 1.0)] == [50, 95, 100]
    assert percentile([7.0], 0.95) == 7.0
    assert percentile([], 0.95) == 0.0


@pytest.fixture
def config(tmp_path) -> Config:
    return load(
        project=str(tmp_path),
        environ={"HOTSET_CONFIG": str(tmp_path / "none.toml"), "HOTSET_HOME": str(tmp_path)},
    )


@pytest.fixture
def store() -> Iterator[Store]:
    ram = RamStore()
    yield ram
    ram.close()


def talked(store: Store, key: str, *given: Bill, time: float = 1000.0) -> SessionId:
    talk = StoreTalk(store, key=key, time=time)
    for number, bill in enumerate(given):
        turn = talk.turn(f"question {number}", "answer")
        kept(store, Billed(id_of(store, turn), bill))
    return turn.session


def test_savings_are_told_by_session_the_newest_first(store: Store, config: Config):
    priced = replace(PLAIN, model="claude-sonnet-4-5")
    first = talked(store, "one", measured(PLAIN.sent, priced), measured(PLAIN.sent, priced))
    second = talked(store, "two", measured(Usage(input=500), priced, broke="pays"), time=5000.0)

    found = savings(store, config)

    assert [each.session.id for each in found.sessions] == [second, first]
    assert [each.account.turns for each in found.sessions] == [1, 2]
    assert found.total.measured.dollars == pytest.approx(
        sum(each.account.measured.dollars for each in found.sessions)
    )
    assert found.sessions[0].account.breaks == {"pays": 1}
    assert savings(store, config, first).total == found.sessions[1].account
    assert [each.session.id for each in savings(store, config, since=4000.0).sessions] == [second]


def test_turns_that_have_no_bill_are_told(store: Store, config: Config):
    talked(store, "one", measured(PLAIN.sent))
    StoreTalk(store, key="two").turn("nobody counted", "this")

    assert savings(store, config).uncounted == 1


def test_a_model_without_a_list_price_is_named(store: Store, config: Config):
    talked(store, "one", measured(PLAIN.sent, replace(PLAIN, model="nobody-knows-1")))

    assert savings(store, config).total.unlisted == ("nobody-knows-1",)


@pytest.mark.row("C8")
def test_metrics_over_the_store_count_turns_and_summaries_and_find_late_alerts(
    store: Store, config: Config
):
    talked(store, "one", measured(PLAIN.sent), measured(PLAIN.sent, faults=2, refaults=1, calls=2))
    for name in ("Summarised", "Summarised", "SummaryFailed"):
        kept(store, Event(name, 1.0))
    for time in (10.0, 99.0):
        kept(
            store,
            Event(
                "Alert", time, detail={"name": "overhead_ms_p95", "value": 12.0, "threshold": 10.0}
            ),
        )

    found, raised = over_store(store, config, since=50.0)

    assert (found.turns, found.prompt_per_turn, found.whole_per_turn, found.mean_context) == (
        2,
        1000,
        4000,
        667,
    )
    assert (found.faults, found.refaults, found.retrieval_pct) == (2, 1, 50.0)
    assert (found.summaries, found.summary_failures, found.dedup_pct) == (2, 1, None)
    assert [event.time for event in raised] == [99.0]


def test_of_no_turns_there_are_metrics_all_the_same():
    found = metrics(ledger_of().total(), Births(4, 1), 0, 0)

    assert (
        found.turns,
        found.prompt_per_turn,
        found.saved_pct,
        found.prefix_kept_pct,
        found.dedup_pct,
    ) == (0, 0, 0, 100.0, 25.0)


def watched(
    config: Config, given: list[Bill], failures: int = 0, now: float = 0.0
) -> tuple[Watch, list[str]]:
    watch = Watch(config.thresholds)
    raised = [alert.name for bill in given for alert in watch.add(bill, failures, now)]
    return watch, raised


@pytest.mark.row("C8")
@pytest.mark.parametrize(
    ("bill", "name"),
    [
        (replace(PLAIN, faults=1), "retrieval_pct"),
        (replace(PLAIN, broke="pays"), "prefix_kept_pct"),
        (replace(PLAIN, overhead_ms=11.0), "overhead_ms_p95"),
    ],
)
def test_a_figure_beyond_its_threshold_is_told_once(config: Config, bill: Bill, name: str):
    watch, raised = watched(config, [bill] * 120)

    assert raised == [name]
    assert [alert.name for alert in watch.standing()] == [name]


@pytest.mark.row("C8")
def test_handoffs_are_planned_and_raise_no_alert_of_a_lost_cache(config: Config):
    given = [replace(PLAIN, broke="handoff" if n % 10 else "") for n in range(60)]
    assert "prefix_kept_pct" not in watched(config, given)[1]


def test_figures_within_their_thresholds_are_silent(config: Config):
    """One retrieval in 20 turns, one broken prefix in 50, one slow plan in 50."""
    turns = [
        replace(
            PLAIN,
            faults=int(number % 20 == 19),
            broke="pays" * (number % 50 == 49),
            overhead_ms=50.0 * (number % 50 == 47),
        )
        for number in range(200)
    ]

    assert watched(config, turns)[1] == []


@pytest.mark.row("C8")
def test_a_mean_prompt_is_judged_by_the_calls_of_its_turns_and_only_where_the_window_is_known(
    config: Config,
):
    filled = replace(PLAIN, usage=Usage(input=19_000), calls=2)
    watch = Watch(config.thresholds)
    for _ in range(60):
        watch.add(filled, 0, 0.0, window=10_000)
    unknown = Watch(config.thresholds)
    for _ in range(60):
        unknown.add(filled, 0, 0.0)

    assert [(alert.name, alert.value) for alert in watch.standing()] == [("window_pct", 95.0)]
    assert unknown.standing() == ()


@pytest.mark.row("C8")
def test_repeats_are_judged_when_there_were_enough_of_them(config: Config):
    watch = Watch(config.thresholds)
    watch.add(PLAIN, 0, 0.0, repeats=Repeats(19, 0))
    assert watch.standing() == ()

    watch.add(PLAIN, 0, 0.0, repeats=Repeats(1, 0))
    assert [(alert.name, alert.value) for alert in watch.standing()] == [("dedup_hit_pct", 0.0)]

    watch.add(PLAIN, 0, 0.0, repeats=Repeats(20, 20))
    assert watch.standing() == ()


def test_a_few_turns_give_no_cause_for_an_alert(config: Config):
    assert watched(config, [replace(PLAIN, faults=1, broke="pays", overhead_ms=99.0)] * 20)[1] == []


def test_a_summary_that_failed_is_told_at_once_and_forgotten_in_time(config: Config):
    watch, raised = watched(config, [PLAIN], failures=1)
    assert raised == ["summary_failures"]

    for _ in range(200):
        watch.add(PLAIN, 1, 0.0)

    assert watch.standing() == ()


@pytest.mark.row("C8")
def test_sixteen_turns_of_one_session_that_take_more_than_80k_tokens_are_told(config: Config):
    large = replace(PLAIN, usage=Usage(input=5_001))
    one = [replace(large, session=SessionId("s1"))] * 20
    many = [replace(large, session=SessionId(f"s{number}")) for number in range(20)]
    within = [replace(PLAIN, usage=Usage(input=5_000), session=SessionId("s1"))] * 20

    assert watched(config, one)[1] == ["prompt_in_16_turns"]
    assert watched(config, many)[1] == []
    assert watched(config, within)[1] == []


@pytest.mark.row("C8")
def test_one_summary_in_a_hundred_may_fail(config: Config):
    watch = Watch(config.thresholds)
    watch.add(PLAIN, 0, 0.0)

    assert watch.add(PLAIN, 1, 0.0, summaries=100) == ()
    (alert,) = watch.add(PLAIN, 2, 0.0, summaries=100)
    assert (alert.name, alert.value) == ("summary_failures", 2.0)


@pytest.mark.row("C8")
def test_one_call_in_ten_may_retrieve_something(config: Config):
    turns = [replace(PLAIN, faults=int(number % 10 == 9)) for number in range(120)]

    assert watched(config, turns)[1] == []
    assert watched(config, [*turns, *[replace(PLAIN, faults=1)] * 10])[1] == ["retrieval_pct"]


def test_an_alert_that_stands_is_told_again_after_an_hour(config: Config):
    watch = Watch(config.thresholds)
    times = [60.0 * minute for minute in range(240)]

    raised = [now for now in times for _ in watch.add(replace(PLAIN, faults=1), 0, now)]

    assert len(raised) == 4
    assert all(later - earlier >= QUIET_SECONDS for earlier, later in pairwise(raised))


def test_another_run_s_alert_within_the_hour_is_not_told_again(store: Store, config: Config):
    alert = watched(config, [PLAIN], failures=1)[0].standing()[0]
    kept(store, event_of(alert, 1000.0))

    assert raised_lately(store, event_of(alert, 1000.0 + QUIET_SECONDS - 1))
    assert not raised_lately(store, event_of(alert, 1000.0 + QUIET_SECONDS))
    assert not raised_lately(store, event_of(replace(alert, name="retrieval_pct"), 1001.0))


def test_results_that_the_window_had_already_are_counted():
    tally = CallTally()

    tally.born(
        [
            shows(Chain("c"), "text", form=form)
            for form in (Form.FULL, Form.EXCERPT, Form.ECHO, Form.CHANGE)
        ]
    )
    tally.born([shows(Chain("c"), "text", form=Form.STUB, cause=Cause.PAYS)])

    assert (tally.births, tally.births_again) == (4, 2)


@pytest.mark.row("C8")
def test_an_alert_is_an_event_in_the_store_once_an_hour_also_after_a_restart(
    store: Store, config: Config
):
    async def run() -> None:
        keeper = Keeper(lambda: store, lambda: 0.0)
        keeper.open()
        machine = Machine(config, HttpWire({}), keeper, clock=lambda: 5000.0)
        for _ in range(60):
            machine.billed(measured(PLAIN.sent, faults=1))
        assert machine.metrics().retrieval_pct == 100.0
        await machine.background.drain(10)
        await machine.wire.close()

    for _ in range(2):
        asyncio.run(run())

    raised = [event for event in store.events() if event.name == "Alert"]
    assert [(event.time, event.detail) for event in raised] == [
        (5000.0, {"name": "retrieval_pct", "value": 100.0, "threshold": 10.0})
    ]


def test_without_the_clients_marks_sending_everything_would_not_have_been_cached():
    whole, sent = Usage(input=1000), Usage(cache_read=600, cache_write=200)
    measured = Usage(cache_read=500, cache_write=260, input=20)

    assert reconcile(whole, measured, sent) == Usage(input=975)


@given(st.lists(bills, max_size=8))
def test_what_the_turns_cost_adds_up_to_what_the_session_cost(given):
    turns = [
        replace(bill, session=SessionId("s1"), turn=number) for number, bill in enumerate(given, 1)
    ]
    account = ledger_of(*turns).total()
    costs = turn_costs(turns, lambda _model, _upstream: PRICE).values()

    assert sum(spent for spent, _ in costs) == pytest.approx(account.measured.dollars)
    assert sum(whole for _, whole in costs) == pytest.approx(account.estimated.dollars)
