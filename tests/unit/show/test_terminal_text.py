"""Tables where the terminal is narrower than they are."""

from __future__ import annotations

from steelyard.wrappers.show import terminal_text

HEADINGS = ("job", "name", "state", "energy", "CPU")
ROWS = [("1", "a_long_name", "completed", "–", "33 %"), ("2", "b", "failed", None, "1 %")]


def test_where_there_is_room_all_stays() -> None:
    for room in (None, 60):
        assert terminal_text.drop_columns(HEADINGS, ROWS, ("name", "energy"), room) == (
            list(HEADINGS),
            [list(row) for row in ROWS],
        )
        assert terminal_text.transpose_wide_table(HEADINGS, ROWS, room)[0] == list(HEADINGS)


def test_what_says_nothing_goes_first() -> None:
    assert terminal_text.table_width([HEADINGS, *ROWS]) == 3 + 11 + 9 + 6 + 4 + 5 * 3
    names, rows = terminal_text.drop_columns(HEADINGS, ROWS, ("name", "energy"), 40)
    assert names == ["job", "name", "state", "CPU"] and rows[0][1] == "a_long_name"
    names, rows = terminal_text.drop_columns(HEADINGS, ROWS, ("name", "energy"), 30)
    assert (names, rows[1]) == (["job", "state", "CPU"], ["2", "failed", "1 %"])
    assert terminal_text.drop_columns(HEADINGS, ROWS, ("name", "energy"), 3)[0] == [
        "job",
        "state",
        "CPU",
    ]


def test_a_table_is_turned_where_that_fits() -> None:
    headings, rows = terminal_text.transpose_wide_table(HEADINGS, ROWS[:1], 30)
    assert headings == ["job", "1"]
    assert rows == [
        ["name", "a_long_name"],
        ["state", "completed"],
        ["energy", "–"],
        ["CPU", "33 %"],
    ]
    assert terminal_text.transpose_wide_table(HEADINGS, ROWS[:1], 10)[0] == list(
        HEADINGS
    )  # it would not fit either
