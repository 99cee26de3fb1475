"""Text as tokens come: however it is cut, the pieces are the whole up to the first stop string."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from memograd.gateway.engine import TextStream

LETTERS = st.text(alphabet="ab苹果🍎", max_size=12)


def decode(ids: list[int]) -> str:
    """One byte a token."""
    return bytes(ids).decode("utf-8", "replace")


def before_stop(text: str, stops: list[str]) -> str:
    """The shortest beginning of `text` that ends with a stop string, without it."""
    for end in range(len(text) + 1):
        ending = [len(stop) for stop in stops if text[:end].endswith(stop)]
        if ending:
            return text[: end - max(ending)]
    return text


@given(LETTERS, st.lists(LETTERS.filter(bool), max_size=3))
@example("aba", ["b", "aba"])
def test_pieces_are_the_text_up_to_the_first_stop(text: str, stops: list[str]) -> None:
    stream = TextStream(decode, stops)
    said = ""
    for token in text.encode():
        said += stream.push(token)
        # What was said is never taken back, and holds no stop string.
        assert before_stop(text, stops).startswith(said)
        if stream.stopped:
            break
    else:
        said += stream.finish()
    assert said == before_stop(text, stops)
    assert stream.stopped == any(stop in text for stop in stops)


def test_a_token_of_several_letters_ends_where_single_letters_would() -> None:
    whole = TextStream(lambda ids: "aba" * len(ids), ["b", "aba"])
    assert (whole.push(0), whole.stopped) == ("a", True)


def test_nothing_is_said_after_a_stop() -> None:
    """A server that checks several tokens at once may send some that it drew behind the stop."""
    stream = TextStream(decode, ["b"])
    assert "".join(map(stream.push, b"abab")) + stream.finish() == "a"


def test_a_stop_ends_it_at_its_last_token() -> None:
    stream = TextStream(decode, ["</a>"])
    pieces = [stream.push(token) for token in b"x<y</a"]
    assert pieces == ["x", "", "<y", "", "", ""]
    assert (stream.push(ord(">")), stream.stopped) == ("", True)


def test_broken_bytes_are_not_held_for_ever() -> None:
    stream = TextStream(decode)
    said = [stream.push(0xE8) for _ in range(20)]
    assert any(said)
    assert "\ufffd" in "".join(said) + stream.finish()
