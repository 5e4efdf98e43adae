"""The journal: entries get their places at once, and answers wait for theirs."""

from hypothesis import given, strategies as st

from coopbandits.fleet.core.actions import Answer, Append, Note, Recall
from coopbandits.fleet.core.entries import Activated, Adopted, written
from coopbandits.fleet.core.journal import Journal
from coopbandits.fleet.ports import StoredRecord


def entry(number=0):
    return Activated(float(number), f"e{number}")


def test_entries_of_a_step_come_before_its_actions_in_one_append_and_once():
    journal, records = Journal(), (StoredRecord("north", 1, 1, b"data"),)
    journal.note("before", x=1)
    assert journal.append(entry(1)) == 1
    assert journal.append(entry(2), records) == 2
    assert journal.taken() == [
        Append((written(entry(1)), written(entry(2), records))), Note("before", {"x": 1}),
    ]  # fmt: skip
    assert journal.taken() == []
    assert (journal.position, journal.synced) == (2, 0)


def test_data_wait_to_be_applied_in_order_with_what_they_were_made_of():
    journal = Journal()
    journal.append(entry())
    assert journal.append_data(Adopted(1.0, 1, b"a"), (), "one") == 2
    assert journal.append_data(Adopted(1.0, 2, b"b"), (), "two") == 3
    assert [(data.position, data.payload) for data in journal.unapplied] == [(2, "one"), (3, "two")]
    journal.sync(3)
    assert len(journal.unapplied) == 2  # the core takes them


def test_what_waits_for_a_place_that_is_durable_does_not_wait():
    journal = Journal()
    journal.append(entry())
    journal.sync(1)
    journal.taken()
    journal.when_synced(1, Answer(1, None))
    assert journal.taken() == [Answer(1, None)]
    journal.when_synced(2, Answer(2, None))
    assert journal.taken() == []


def test_a_sync_that_is_behind_another_takes_nothing_back():
    journal = Journal()
    for _ in range(3):
        journal.append(entry())
    journal.sync(3)
    journal.sync(1)
    assert journal.synced == 3


def test_who_waits_when_all_is_given_up_is_known_by_ticket():
    journal = Journal()
    journal.append(entry())
    journal.when_synced(1, Answer(5, None))
    journal.when_synced(1, Recall(6, (1,), False))
    assert journal.forgotten() == [5, 6]
    journal.sync(1)
    assert journal.forgotten() == []
    assert all(isinstance(one, Append) for one in journal.taken())


@given(st.lists(st.one_of(
    st.tuples(st.just("append"), st.just(0)),
    st.tuples(st.just("wait"), st.integers(0, 5)),
    st.tuples(st.just("sync"), st.integers(0, 5)),
), max_size=30))  # fmt: skip
def test_every_answer_is_given_once_and_not_before_its_place_is_durable(steps):
    journal, asked, answered = Journal(), [], []
    for number, (what, back) in enumerate(steps):
        place = max(0, journal.position - back)
        if what == "append":
            journal.append(entry(number))
        elif what == "wait":
            journal.when_synced(place, Answer(number, None))
            asked.append((place, number))
        else:
            journal.sync(place)
        answered += [one.ticket for one in journal.taken() if isinstance(one, Answer)]
        assert sorted(answered) == sorted(n for place, n in asked if place <= journal.synced)
    journal.sync(journal.position)
    answered += [one.ticket for one in journal.taken() if isinstance(one, Answer)]
    assert sorted(answered) == [number for _, number in asked]
