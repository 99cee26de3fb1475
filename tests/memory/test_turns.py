from __future__ import annotations

from datetime import date, datetime

from hypothesis import given
from hypothesis import strategies as st

from memograd.memory import RawTurn, format_date


def test_render_begins_with_the_date() -> None:
    turn = RawTurn("D1:3", "Caroline", "I went to a fair.", datetime(2023, 5, 7, 13, 56), 1)
    assert turn.render() == "[7 May 2023] Caroline: I went to a fair."


def test_render_of_a_photo_and_of_no_date() -> None:
    turn = RawTurn("D1:4", "王芳", "看,我的猫!", None, 1, caption="a photo of a cat")
    assert turn.render() == "王芳: 看,我的猫! (shares a photo: a photo of a cat)"


def test_same_words_of_another_speaker_or_day_render_differently() -> None:
    one = RawTurn("D1:1", "Ann", "I moved.", datetime(2023, 5, 7), 1)
    other = RawTurn("D1:2", "Bob", "I moved.", datetime(2023, 5, 7), 1)
    later = RawTurn("D2:1", "Ann", "I moved.", datetime(2023, 6, 7), 2)
    assert len({one.render(), other.render(), later.render()}) == 3


def test_what_is_embedded_ends_with_the_date_and_has_a_caption_only_for_a_silent_photo() -> None:
    time = datetime(2023, 5, 7)
    said = RawTurn("D1:3", "Ann", "Look at my cat!", time, 1, caption="a cat on a sofa")
    silent = RawTurn("D1:4", "王芳", " ", time, 1, caption="a cat on a sofa")
    assert said.index_text() == "Ann: Look at my cat! [7 May 2023]"
    assert silent.index_text() == "王芳: a cat on a sofa [7 May 2023]"
    assert RawTurn("D1:5", "Ann", "Hi!", None, 1).index_text() == "Ann: Hi!"


@given(speaker=st.text(), text=st.text(), caption=st.none() | st.text())
def test_a_rendered_turn_is_one_line(speaker: str, text: str, caption: str | None) -> None:
    turn = RawTurn("D1:1", speaker, text, datetime(2023, 5, 7), 1, caption)
    rendered = turn.render()
    assert len(rendered.splitlines()) == 1
    assert rendered.startswith("[7 May 2023] ")


def test_dates_are_spelled_out_in_english() -> None:
    assert format_date(date(2024, 2, 29)) == "29 February 2024"
    assert format_date(datetime(2023, 12, 1, 9, 30)) == "1 December 2023"
