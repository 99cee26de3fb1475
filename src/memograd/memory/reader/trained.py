"""The reader that a trained model guides: which sentences of a message are worth keeping.

The model reads the message with what came before it and gives each sentence its worth; rules do
what they do well around it: they cut sentences, name the speaker, resolve dates, and see by their
form what is not the user's own word (code, mails, the text of a task) and what is a secret. A
secret that has no form is told by the model.

Invariants: a fact comes from a user's own words, or is worded as what the assistant said; nothing
that holds a secret becomes a fact; the same turns give the same facts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from memograd.memory.language import is_chinese
from memograd.memory.reader.about import answered_by, person_meant, said_before, spoken_of
from memograd.memory.reader.answers import (
    BARE_ANSWER,
    begins_bare,
    only_offers,
    told_in_full,
    without_guess,
)
from memograd.memory.reader.asked import (
    BY_ORDER,
    EVERYTHING,
    FORGETS,
    IDLE,
    OF_MEMORY,
    OFF_RECORD,
    TOLD_ASIDE,
    WITHDRAWS,
    asks_nothing_of_memory,
    is_of_text,
    requests,
    speaks_to_nobody,
)
from memograd.memory.reader.assistant import (
    WANTS_TEXT,
    Line,
    asks_for_ideas,
    reads_out,
    say_kept,
    writes_text,
)
from memograd.memory.reader.choices import chosen
from memograd.memory.reader.fact import Fact, Heard, Said
from memograd.memory.reader.forget import MAY_ASK, asked_for
from memograd.memory.reader.heads import is_standing
from memograd.memory.reader.held_back import (
    LONGEST,
    may_be_code,
    told_by_way_in,
    without_secrets,
)
from memograd.memory.reader.idle import is_idle
from memograd.memory.reader.in_confidence import asks_not_to_save, left_open
from memograd.memory.reader.parts import (
    asks,
    asks_back,
    beginning,
    begins_short,
    own_sentences,
    question_before,
    supposes,
)
from memograd.memory.reader.rules import to_fact
from memograd.memory.reader.self_corrected import turn_as_meant
from memograd.memory.reader.sentences import (
    goes_on_with_play,
    has_secret,
    repeats_code,
    tells_code,
)
from memograd.memory.reader.setting import Setting
from memograd.memory.reader.side_by_side import owner_before, with_speaker
from memograd.memory.reader.talk import keeps_talk_going
from memograd.memory.reader.wording import bare_of, say, say_answer, without_calls
from memograd.memory.reader.worths import Worths
from memograd.memory.records.turns import NOT_PEOPLE, RawTurn

if TYPE_CHECKING:
    import numpy as np


BEFORE_TURNS: Final = 3

ONLY_A_CODE: Final = {"en": 40, "zh": 12}
"""Characters; behind a secret a shorter message with a figure holds nothing but another one."""
SITTING: Final = timedelta(hours=1)
"""How long after a message a part that it began may still be played."""
WISH_AMONG_PEOPLE: Final = 0.75
"""How likely a wish must be in a talk of several people, where "Forget it!" is said to them."""
LEAST_WISH: Final = 0.3
"""How likely a wish must be at least, whatever the words: "Remove the second bullet" is none."""
PERHAPS_ABOVE: Final = 0.15
"""How likely a wish must be that counts where it surely means something that is remembered."""
PERHAPS_SAID_ABOVE: Final = 0.03
"""The same where the message has a word that such requests have."""


class TrainedReader(Worths):
    """Facts as a relation model sees them; `thresholds`: how sure it must be, by default the
    model's."""

    def read(self, turns: Sequence[RawTurn]) -> list[Fact]:
        """The facts alone; see `MemReader.read`."""
        return [fact for heard in self.hear(turns, ()) for fact in heard.facts]

    def hear(self, turns: Sequence[RawTurn], before: Sequence[RawTurn]) -> list[Heard]:
        """See `MessageReader.hear`."""
        known = [*before, *turns]
        speakers = tuple(dict.fromkeys(turn.speaker for turn in turns))
        people = {turn.speaker for turn in turns if turn.said_as == "user"}
        found = []
        for number, turn in enumerate(known[len(known) - len(turns) :], len(known) - len(turns)):
            past = known[max(0, number - BEFORE_TURNS) : number]
            said = tuple((other.said_as, other.text) for other in past)
            last, earlier = said_before(known[:number], turn)
            around = known[max(0, len(known) - len(turns) - BEFORE_TURNS) :]
            alone = all(one.speaker == turn.speaker for one in around if one.said_as == "user")
            near = spoken_of(last, answered_by(past, turn), [*people])
            asked = question_before(past, turn)
            asked = asked and without_guess(asked, turn.text)[0]
            setting = Setting(
                turn_as_meant(self._model, turn, said), speakers, len(people) <= 1, asked, last,
                near=near, alone=alone, earlier=earlier,
            )  # fmt: skip
            just_now = tuple((one.said_as, one.text) for one in past if _is_just_before(one, turn))
            found.append(self._heard(setting, said, just_now))
        return found

    def _heard(
        self, setting: Setting, before: tuple[Said, ...], just_now: tuple[Said, ...]
    ) -> Heard:
        import numpy as np

        turn = setting.turn
        role = turn.said_as
        if role in NOT_PEOPLE:
            return Heard(turn, before)
        sentences = own_sentences(turn.text)
        own = " ".join(text for _, _, text in sentences)
        secret = role == "user" and has_secret(turn.text)
        if not sentences:
            return Heard(turn, before, secret=secret)
        if role == "user" and goes_on_with_play(just_now, turn.text):
            return Heard(turn, before, secret=secret, own=own, may_close=False)
        read = turn.text
        if role == "assistant":
            if writes_text(before) or reads_out(before, own):
                return Heard(turn, before, own=own)
            read, sentences = beginning(turn.text, sentences)
        worth = self._model.worth(read, before, [text for _, _, text in sentences], role=role)
        if role == "user":
            worth = self._with_asides(setting, before, sentences, worth)
            sentences, worth = self._with_parentheses(sentences, worth)
        if role == "assistant":
            kept = [
                Line(*one) for one, (fact, _, _) in zip(sentences, worth.tolist(), strict=True)
                if fact >= self.thresholds.keep_assistant_above
                and not asks(one[2]) and not is_idle(one[2])
                and len(one[2]) <= LONGEST and not has_secret(one[2])
            ]  # fmt: skip
            said = say_kept(kept, turn.text, before, setting)
            facts = tuple(to_fact(draft, setting) for _, draft in said)
            return Heard(turn, before, facts, tuple(quote for quote, _ in said), own=own)
        may_close = self._model.may_close(read, before, [text for _, _, text in sentences])
        last = next((text for who, text in reversed(before) if who == "user"), "")
        behind_code = re.search(r"\d", own) is not None and (has_secret(last) or tells_code(last))
        if behind_code and len(own) < ONLY_A_CODE["zh" if is_chinese(own) else "en"]:
            return Heard(turn, before, secret=True, own=own)  # "Scratch that, it's 4321"
        formless = [one for one in sentences if not has_secret(one[2])]
        told_by_way = told_by_way_in(self._model, turn.text, before, formless)
        if behind_code:  # "Changed it to 9157 after the break-in. We're in Surrey"
            told_by_way |= {one[:2] for one in formless if may_be_code(one[2])}
        if tells_code(turn.text):
            told_by_way |= {one[:2] for one in formless if repeats_code(turn.text, one[2])}
        sentences, worth, kept_back = without_secrets(
            self._model, turn.text, before, sentences, worth, told_by_way
        )
        if not sentences:
            return Heard(turn, before, secret=True, own=own)
        perhaps = self._perhaps(own, sentences, worth, setting)
        if len(own) <= LONGEST:
            held = [one for one in sentences if one[:2] in told_by_way]
            sentences, worth = self._with_clauses(setting, before, sentences, worth)
            parts = [one for one in sentences if _inside(one, formless)]
            told_by_way |= told_by_way_in(self._model, turn.text, before, parts)
            told_by_way |= {one[:2] for one in sentences if _inside(one, held)}
        secret = secret or kept_back or bool(told_by_way)
        if EVERYTHING.search(own) and len(own) < 160:
            return Heard(turn, before, everything=True, own=own)
        # Asked of the whole message once: of a long one each sentence would cost as much.
        may_ask = MAY_ASK.search(own) is not None
        to_nobody = not may_ask and speaks_to_nobody(own)
        of_text = WANTS_TEXT.search(f"{setting.before} {own}")
        forget = any(
            self._wishes(text, float(wish), may_ask, to_nobody, setting)
            for (_, _, text), (_, _, wish) in zip(sentences, worth, strict=True)
        )
        idle = IDLE.search(asked_for(own)) is not None and OF_MEMORY.search(own) is None
        # "Forget the number I gave you": the model knows what is spoken of.
        idle = idle and float(worth[:, 2].max()) < self.thresholds.wish_unsaid_above
        if forget and (asks_nothing_of_memory(own) or is_of_text(own, before)):
            idle = True
        forget = forget and not idle
        unsaved = [
            text
            for (_, _, text), (_, _, wish) in zip(sentences, worth, strict=True)
            if not kept_back and asks_not_to_save(text, float(wish))
        ]
        open_ = left_open(self._model, sentences, unsaved) if unsaved else []
        if OFF_RECORD.match(own) and not kept_back and not open_:
            return Heard(turn, before, secret=True, own=own, may_close=False)
        if unsaved:
            if not open_:
                return Heard(turn, before, forget=True, secret=True, own=own)
            forget = forget or not TOLD_ASIDE.search(own)
            secret, sentences = True, open_
            worth = np.concatenate([self._model.worth(one[2], (), [one[2]]) for one in open_])
        if len(own) <= LONGEST:
            sentences, worth = self._with_heads(setting, sentences, worth, told_by_way)
        keep, facts_, asked_, answered = [], [], [], False
        # 大学打球扭过两次，现在还酸。鞋预算600: what comes after an answer is no second one.
        told_at_length = not begins_short(sentences[0][2]) and not asks(sentences[0][2])
        for (start, end, text), (fact, _, wish) in zip(sentences, worth.tolist(), strict=True):
            bare_text = bare_of(text)
            called = without_calls(bare_text, setting)
            if called != bare_text and (len(called) < 2 or is_idle(called)):
                continue  # "Thanks, Mel!" only calls somebody
            if len(text) > LONGEST or has_secret(text) or (start, end) in told_by_way:
                continue
            if (is_idle(text) or supposes(text)) and not setting.question:
                continue
            answer = setting.question is not None and text is sentences[0][2]
            called_so = called != bare_text
            if not setting.alone and keeps_talk_going(called, called=called_so, answers=answer):
                continue
            if forget and self._wishes(text, float(wish), may_ask, to_nobody, setting):
                continue
            # What begins a longer message is worded as an answer, but must be worth keeping by
            # itself: people often leave a question unanswered.
            points = bool(setting.question and chosen(setting.question, text))
            only = points or len(sentences) <= 2
            first = text is sentences[0][2] or (only and not told_at_length)
            heads = begins_short(text) or begins_bare(setting.question or "", text)
            asked = points or (first and heads and not asks_back(text))
            full = told_in_full(setting.question, text) if setting.question and only else None
            answers = setting.question if asked or full else None
            plain = full is not None or points or BARE_ANSWER.match(text) is not None
            bare = answers and only and plain and not only_offers(answers)
            least = (
                self.thresholds.keep_answer_above
                if answers and only
                else self._least(text, setting)
            )
            standing = setting.alone and is_standing(text) and not of_text
            if fact < least and not bare and not standing:
                may = fact >= self.thresholds.keep_asked_above and not answers
                if may and asks(text) and not asks_for_ideas(text):
                    asked_.append(to_fact(say(text, setting), setting))
                continue
            if answers and only_offers(answers) and BARE_ANSWER.fullmatch(text):
                continue
            meant = person_meant(bare_text, turn.text[:start], setting.near, setting.earlier)
            spoken = replace(setting, about=meant)
            if full:
                draft = say(full, setting)
            else:
                told_of = _with_speaker(turn.text, start, text)
                draft = say_answer(answers, text, setting) if answers else say(told_of, spoken)
            answered = answered or bool(answers)
            keep.append(text)
            facts_.append(to_fact(draft, setting))
        whole = stated = ""
        if not secret and len(own) <= LONGEST:
            meant = person_meant(bare_of(own), "", setting.near, setting.earlier)
            spoken = replace(setting, about=meant)
            whole = say(" ".join(own.split()), spoken).text
            told = [text for _, _, text in sentences if not asks(text) and not is_idle(text)]
            if len(keep) == 1 and len(told) > 1 and not answered:
                stated = say(" ".join(" ".join(told).split()), spoken).text
        return Heard(
            turn,
            before,
            tuple(facts_),
            tuple(keep),
            forget=forget,
            idle=idle,
            secret=secret,
            whole=whole,
            stated=stated,
            asked=tuple(asked_) if keep and not secret else (),
            own=own,
            may_close=may_close,
            perhaps=() if forget or idle or secret else perhaps,
        )

    def _wishes(
        self, text: str, wish: float, said: bool, to_nobody: bool, setting: Setting
    ) -> bool:
        """Whether the sentence asks to forget something, or not to keep it.

        said: whether its message has a word for that. One that has none must wish it more surely.
        to_nobody: whether it has none and `speaks_to_nobody`, so that nobody is asked.
        Where people talk with each other nobody speaks to a memory ("Believe in yourself!"), so
        both are needed there.
        """
        if requests(text) or (setting.alone and FORGETS.search(text)):
            said_so = WITHDRAWS.match(text) or BY_ORDER.match(text)
            return wish >= LEAST_WISH or said_so is not None
        sure = self.thresholds
        if not setting.alone:
            return said and wish >= WISH_AMONG_PEOPLE
        if to_nobody:
            return False
        return wish >= (sure.wish_above if said else sure.wish_unsaid_above)

    def _perhaps(
        self,
        message: str,
        sentences: list[tuple[int, int, str]],
        worth: np.ndarray,
        setting: Setting,
    ) -> tuple[str, ...]:
        """The sentences that may ask to forget something, as `Heard.perhaps` says."""
        if not setting.alone or asks_nothing_of_memory(message) or speaks_to_nobody(message):
            return ()
        least = PERHAPS_SAID_ABOVE if MAY_ASK.search(message) else PERHAPS_ABOVE
        likely = zip(sentences, worth.tolist(), strict=True)
        return tuple(text for (_, _, text), row in likely if row[2] >= least)


def _with_speaker(message: str, start: int, text: str) -> str:
    """A fact with who it is of, where its sentence says that before another one."""
    at, sentence = next(
        ((at, one) for at, end, one in own_sentences(message) if at < start < end), (start, text)
    )
    if is_chinese(sentence) and (owner := owner_before(sentence, start - at, text)):
        return f"{owner}{text}"
    return with_speaker(sentence, start - at, text)


def _is_just_before(earlier: RawTurn, turn: RawTurn) -> bool:
    """Whether it was said within the same sitting, as far as the clock tells."""
    if earlier.time is None or turn.time is None:
        return True
    return turn.time - earlier.time <= SITTING


def _inside(part: tuple[int, int, str], sentences: Sequence[tuple[int, int, str]]) -> bool:
    return any(start <= part[0] and part[1] <= end for start, end, _ in sentences)
