"""What the sentences of a message are worth: cut, joined and read again where the model overlooks.

Beside a question, a task or a reaction a fact hardly looks like one, and of two facts in a sentence
only one may be worth keeping. So sentences are taken apart at their facts and clauses, heads are
joined with what goes on about them, and what is told by the way is read alone.

Invariants: a part stands in the message, in these letters, where its place says; what is read alone
must be surer than what is read in its message; nothing is worth less for having been read again.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from memograd.memory.language import is_chinese
from memograd.memory.reader.asked import BY_THE_WAY, FORGETS
from memograd.memory.reader.asking_english import without_asking
from memograd.memory.reader.fact import Said
from memograd.memory.reader.heads import belongs, goes_behind, is_telling, leans
from memograd.memory.reader.held_back import LONGEST
from memograd.memory.reader.parts import asks, asks_openly, clauses_of
from memograd.memory.reader.sentences import has_secret
from memograd.memory.reader.setting import Setting
from memograd.memory.reader.side_by_side import facts_apart, told_behind_correction
from memograd.memory.reader.talk import may_tell, told_in
from memograd.memory.reader.wording import NOBODY, as_one, bare_of, resolved, without_calls

if TYPE_CHECKING:
    import numpy as np

    from memograd.memory.relations import RelationModel, Thresholds

_OWN_SUBJECT: Final = re.compile(r"(?:and |but )?(?:i|i'?m|i'?ve|my) |我|俺|咱", re.IGNORECASE)
_FIRST_PERSON: Final = re.compile(r"\b(?:i|i'?m|i'?ve|my|me|we|our|us|mine)\b|我|咱", re.IGNORECASE)
_INTRODUCES: Final = re.compile(
    r"\W*(?:(?:hi|hey|hello|so|ok)\b[\s,!.]*)*(?:i(?:['’]?m| am|['’]?ve| have| work| teach| run"
    r"| live| own)|my|we(?:['’]re| are| have| run| live))\b[^?]*[.!]\s*$",
    re.IGNORECASE,
)
_IN_PARENTHESES: Final = re.compile(
    r"[(（]((?:i['’]?m|i am|i['’]?ve|i have|i work|i live|my|we['’]?re|we have|我(?!说|想))"
    r"[^()（）]{3,80})"
    r"[)）]",
    re.IGNORECASE,
)
_OWN_VALUE: Final = re.compile(
    r"\b(my (?:(?:current|monthly|shoe|ring|dress|hourly|starting|target) )?"
    r"(?:height|weight|age|size|salary|wage|rent|budget|blood (?:type|group)|bmi|resting heart rate"
    r"|a1c|hba1c|gpa|mortgage|pension|income|dose|postcode)(?: is| of|:)? "
    r"(?:[£$€₹]?\d[\d.,'’/]*\d*(?: ?(?:kg|lbs?|cm|ft ?\d*|k|stone|mg|mcg|a \w+|per \w+))?"
    r"|(?-i:AB|A|B|O)[+-]))(?!\w)",
    re.IGNORECASE,
)
"""A value of who asks, in a question about it: "convert my height 5ft4 to cm"."""
_AS_ONE: Final = re.compile(
    rf"^\W*(as {NOBODY}an? [^,?.!]{{3,40}}?),? "
    r"(?=(?:what|how|which|should|can|could|do|does|is|are|am|where|when|why|would|will)['’]?s?\b)",
    re.IGNORECASE,
)
"""Who asks: "as a lorry driver what should I eat"."""
_BY_THE_WAY: Final = (_IN_PARENTHESES, _OWN_VALUE, _AS_ONE)
LEAST_TEXT: Final = 20
"""Characters of a text that is handed over with a task; spaces and marks are fewer."""
_LABEL: Final = re.compile(r"^[\w' ]{2,24}: ?(?=(?:i|i'?m|i'?ve|my|we)\b)", re.IGNORECASE)
"""Says what kind of question follows: "excel q: i run a kennel"."""
DATED_ABOVE: Final = 0.28
"""The worth from which "Driving test tomorrow, I feel sick" is kept."""
READ_ALONE_ABOVE: Final = {"en": 0.5, "zh": 0.6}
"""How sure the model must be, of what it drops in its message and reads alone."""
OPEN_QUESTION_ABOVE: Final = 0.55
"""The worth from which "How do I wrap nine feet of it?" is kept."""


class Worths:
    """Reads by a relation model; `thresholds`: how sure it must be, by default the model's."""

    def __init__(self, model: RelationModel, *, thresholds: Thresholds | None = None) -> None:
        self._model = model
        self.thresholds = model.about.thresholds if thresholds is None else thresholds

    def _with_asides(
        self,
        setting: Setting,
        before: tuple[Said, ...],
        sentences: list[tuple[int, int, str]],
        worth: np.ndarray,
    ) -> np.ndarray:
        """The worths, of what is told by the way as if nothing stood before it: behind "write me a
        poem about gulls" all looks like a part of the task, and so does what stands behind the text
        of one. "Broke my wrist, how do I sleep with a cast" is read without what it asks, too."""
        own = sum(len(text) for _, _, text in sentences)
        handed_over = own < len(setting.turn.text) - LEAST_TEXT
        for n, (start, _, text) in enumerate(sentences):
            if worth[n, 0] >= self.thresholds.keep_above or len(text) > LONGEST:
                continue
            read = (text, before)
            by_the_way = BY_THE_WAY.match(text) or (handed_over and not asks(text))
            opens = not n and handed_over and _INTRODUCES.match(text)  # before the task
            told = bool((opens or (start and by_the_way)) and _FIRST_PERSON.search(text))
            if not told and setting.to_agent and not is_chinese(text):
                left = _LABEL.sub("", without_asking(text))
                told, read = left != text, (left, ())
            if told:
                alone = self._model.worth(*read, [read[0]])[0]
                if (
                    read[1]
                    or float(alone[0]) >= READ_ALONE_ABOVE["zh" if is_chinese(text) else "en"]
                ):
                    worth[n] = max(worth[n], alone, key=_fact)
        return worth

    def _with_parentheses(
        self, sentences: list[tuple[int, int, str]], worth: np.ndarray
    ) -> tuple[list[tuple[int, int, str]], np.ndarray]:
        """The sentences, and what one that is not kept tells of who speaks in parentheses: "two
        lines for the noticeboard please (I'm the librarian here): ..."."""
        import numpy as np

        parts: list[tuple[int, int, str]] = []
        rows: list[np.ndarray] = []
        for (start, end, text), row in zip(sentences, worth, strict=True):
            parts.append((start, end, text))
            rows.append(row)
            said = next((p.search(text) for p in _BY_THE_WAY if p.search(text)), None)
            if said is None or float(row[0]) >= self.thresholds.keep_above:
                continue
            read = as_one(said[1])
            alone = self._model.worth(read, (), [read])[0]
            if float(alone[0]) >= READ_ALONE_ABOVE["zh" if is_chinese(said[1]) else "en"]:
                parts.append((start + said.start(1), start + said.end(1), said[1]))
                rows.append(alone)
        return parts, np.stack(rows)

    def _with_heads(
        self,
        setting: Setting,
        sentences: list[tuple[int, int, str]],
        worth: np.ndarray,
        told_by_way: set[tuple[int, int]],
    ) -> tuple[list[tuple[int, int, str]], np.ndarray]:
        """The sentences, what is worth keeping and says nothing alone with the one before it.

        Beside "94 F150, 260 thousand miles" the model overlooks "Truck died in the yard", so where
        something of a message is kept, what tells something before it is also read alone. Where
        people talk, what they react with hides what they tell ("Wow, Mel! We went biking too."), so
        there all that tells something is.
        """
        import numpy as np

        message = setting.turn.text
        answer = setting.question and len(sentences) <= 2 and not is_chinese(message)
        most = self.thresholds.keep_answer_above if answer else 1.0
        kept = [
            float(row[0]) >= min(self._least(one[2], setting), most)
            for one, row in zip(sentences, worth, strict=True)
        ]
        parts: list[tuple[int, int, str]] = []
        rows: list[np.ndarray] = []
        for n, ((start, end, text), row) in enumerate(zip(sentences, worth, strict=True)):
            secret = has_secret(text) or (start, end) in told_by_way
            asked = secret or float(row[2]) >= self.thresholds.part_above or FORGETS.search(text)
            if setting.alone:
                said, overlooked = text, any(kept[n + 1 :]) and is_telling(text)
            else:
                said = told_in(without_calls(bare_of(text), setting))
                behind = bool(parts) and belongs(parts[-1][2], message[parts[-1][1] : start], text)
                overlooked = may_tell(said, float(row[0])) and (behind or not leans(said))
            if not kept[n] and overlooked and not asked:
                alone = self._model.worth(said, (), [said])[0]
                if float(alone[0]) >= READ_ALONE_ABOVE["zh" if is_chinese(text) else "en"]:
                    row, kept[n] = alone, True
            if kept[n] and not secret and parts:
                head = parts[-1]
                harmless = not has_secret(head[2]) and head[:2] not in told_by_way
                if harmless and goes_behind(head, start, text, setting, first=len(parts) == 1):
                    start, text = head[0], message[head[0] : end]
                    row = max(row, rows[-1], key=_fact)
                    del parts[-1], rows[-1]
            parts.append((start, end, text))
            rows.append(row)
        return parts, np.stack(rows)

    def _with_clauses(
        self,
        setting: Setting,
        before: tuple[Said, ...],
        sentences: list[tuple[int, int, str]],
        worth: np.ndarray,
    ) -> tuple[list[tuple[int, int, str]], np.ndarray]:
        """The sentences, those taken apart that as a whole are not worth it but in a clause are.

        "Make me a leg day without lunges, I tore my meniscus": the fact stands beside a request.
        "我住在北京,我喜欢喝绿茶" are two facts, each with its own subject.
        """
        import numpy as np

        message = setting.turn.text
        sentences, worth = self._apart(setting, before, sentences, worth)
        parts: list[tuple[int, int, str]] = []
        rows = []
        split_up: dict[int, list[tuple[int, str]]] = {}
        for number, ((_, _, text), row) in enumerate(zip(sentences, worth, strict=True)):
            clauses = [
                (at, said)
                for at, said in clauses_of(text)
                if len(said) > (2 if is_chinese(said) else 5)
            ]
            told = sum(_OWN_SUBJECT.match(said) is not None for _, said in clauses) > 1
            whole = float(row[0]) >= self._least(text, setting) and not told
            if not whole and float(row[2]) < self.thresholds.wish_above and len(clauses) > 1:
                split_up[number] = clauses
        every = [said for clauses in split_up.values() for _, said in clauses]
        worth_of_clauses = self._model.worth(message, before, every) if every else worth[:0]
        for number, ((start, end, text), row) in enumerate(zip(sentences, worth, strict=True)):
            if number not in split_up:
                parts.append((start, end, text))
                rows.append(row)
                continue
            clauses = split_up[number]
            found = worth_of_clauses[: len(clauses)]
            worth_of_clauses = worth_of_clauses[len(clauses) :]
            for n, (_, said) in enumerate(clauses):
                if asks(text) and _OWN_SUBJECT.match(said) and not asks(said):
                    # 我有高血压,能喝咖啡吗: told by the way, so it is also read alone.
                    found[n] = max(found[n], self._model.worth(said, (), [said])[0], key=_fact)
            least = self.thresholds.keep_clause_above
            good = [n for n in range(len(clauses)) if float(found[n, 0]) >= least]
            kept = float(row[0]) >= self.thresholds.keep_above
            if kept and len(good) < len(clauses) and not asks(text):
                good = []  # told in two breaths, but not two facts
            if not good:
                parts.append((start, end, text))
                rows.append(row)
            for n in good:
                at, said = clauses[n]
                parts.append((start + at, start + at + len(said), said))
                rows.append(found[n])
        return parts, np.stack(rows)

    def _apart(
        self,
        setting: Setting,
        before: tuple[Said, ...],
        sentences: list[tuple[int, int, str]],
        worth: np.ndarray,
    ) -> tuple[list[tuple[int, int, str]], np.ndarray]:
        """The sentences, those that are worth keeping and say several facts fact by fact, where
        each is worth it: what is changed or forgotten later is one of them and not the others."""
        import numpy as np

        parts: list[tuple[int, int, str]] = []
        rows: list[np.ndarray] = []
        for (start, end, text), row in zip(sentences, worth, strict=True):
            if (at := told_behind_correction(text)) is not None:
                more = self._model.worth(text[at:], (), [text[at:]])[0]
                if float(more[0]) >= READ_ALONE_ABOVE["en"]:
                    parts += [
                        (start, start + at, text[:at].rstrip(" ,")),
                        (start + at, end, text[at:]),
                    ]
                    rows += [row, more]
                    continue
            kept = float(row[0]) >= self._least(text, setting) and not has_secret(text)
            facts = facts_apart(text) if kept else []
            if facts:
                found = self._model.worth(setting.turn.text, before, [said for _, said in facts])
                if all(
                    float(one[0]) >= self._least(said, setting)
                    for one, (_, said) in zip(found, facts, strict=True)
                ):
                    parts += [(start + at, start + at + len(said), said) for at, said in facts]
                    rows += [*found]
                    continue
            parts.append((start, end, text))
            rows.append(row)
        return parts, np.stack(rows)

    def _least(self, text: str, setting: Setting) -> float:
        """The worth from which a sentence is kept: a question that tells nothing needs more, and
        what says on which day something is needs less."""
        if asks_openly(text):
            return OPEN_QUESTION_ABOVE
        open_question = asks(text) and not _FIRST_PERSON.search(text)
        if open_question:
            return self.thresholds.keep_question_above
        dated = not asks(text) and resolved(text, setting).day is not None
        return DATED_ABOVE if dated else self.thresholds.keep_above


def _fact(row: np.ndarray) -> float:
    return float(row[0])
