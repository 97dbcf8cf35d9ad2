"""Exercises on the residual stream: what is added to what, and where the norm stands."""

import torch
import torch.nn.functional as F

from course_lib.classroom.exercise import Exercise
from course_lib.classroom.exercises.numbers import numbers
from course_lib.classroom.judge_observe import call_function
from course_lib.classroom.judge_parts import Called, Mistake, Probe
from course_lib.classroom.properties import number, where
from course_lib.transformer.layers import post_norm_sublayer, pre_norm_sublayer


def _square(x):
    return x * x + 0.5


def _shift(x):
    return 3 * x + 1


def _halve(x):
    return x / 2


def _mix(x):
    return x.roll(1, -1) * 2 - 1


def _norm(x):
    return F.layer_norm(x, x.shape[-1:])


def _identity(x):
    return x


class _Watched:
    """A function that remembers what it was given."""

    def __init__(self, fn):
        self.fn, self.given = fn, []

    def __call__(self, x):
        self.given.append(x.detach().clone())
        return self.fn(x)

    def repeats(self) -> bool:
        return any(torch.equal(x, y) for x, y in zip(self.given, self.given[1:], strict=False))


def _call_watched(candidate, probe, args):
    """Call with a watched fn: to run it twice on the same input is a mistake of its own."""
    x, fn, *others = args
    watched = _Watched(fn)
    called = call_function(candidate, probe, (x, watched, *others))
    return Called(called.result, complaint=TWICE if watched.repeats() else "")


TWICE = "It calls `fn` twice on the same input."


def _sub_probe(name, fn, norm, *drop, shape=(2, 3, 5), **more):
    return Probe(name=name, make=lambda: (numbers(*shape, seed=1), fn, norm, *drop), **more)


_PROBES = (
    _sub_probe("fn(x) = x² + 0.5 and norm(x) = 3x + 1", _square, _shift, grads=True),
    _sub_probe("fn(x) = 3x + 1 and a LayerNorm", _shift, _norm, grads=True),
    _sub_probe("the first two, with a drop that halves", _square, _shift, _halve, grads=True),
    _sub_probe("a fn that moves features about", _mix, _norm, _halve, shape=(3, 7)),
    _sub_probe("one token", _square, _norm, shape=(5,), core=False),
    _sub_probe("a fn that gives x itself", _identity, _shift, core=False),
)


def _saw_skip(seen):
    """The gradient that reaches x, against the one that should."""
    yours, right = seen.outcome.grads, seen.expected.grads
    if not yours or not right or seen.yours("y") is None or not seen.comparable("y"):
        return None
    if not torch.allclose(seen.yours("y"), seen.right("y"), atol=1e-4):
        return None
    mine = yours[0] if yours[0] is not None else torch.zeros_like(right[0])
    if torch.allclose(mine, right[0], atol=1e-4):
        return None
    return (
        f"{where(seen)}, the values are right. The gradient that reaches x has size "
        f"{number(mine.norm().item())}, the right one {number(right[0].norm().item())}."
    )


def _doubling(x, fn, norm, drop=_identity):
    fn(x)
    return norm(x + drop(fn(x)))


def _doubling_pre(x, fn, norm, drop=_identity):
    fn(norm(x))
    return x + drop(fn(norm(x)))


def _twice(version):
    return Mistake(
        name="calls_layer_twice",
        title="runs the sub-layer twice on the same input",
        means="It costs twice the time, and with dropout inside the two results differ.",
        next_step="Keep the first result under a name.",
        versions=(version,),
    )


def _cut(name, title, means, version):
    return Mistake(
        name=name,
        title=title,
        saw=_saw_skip,
        means=means,
        next_step="Leave out `detach`, `data` or `no_grad`.",
        versions=(version,),
    )


def _sublayer(reference, mistakes):
    name = reference.__name__
    return Exercise(
        name=name,
        signature=f"{name}(x, fn, norm, drop=identity)",
        arguments=("x", "fn", "norm", "drop"),
        results=("y",),
        reference=reference,
        call=_call_watched,
        probes=_PROBES,
        mistakes=mistakes,
    )


def _in_place_post(x, fn, norm, drop=_identity):
    return norm(x.add_(drop(fn(x))))


def _in_place_pre(x, fn, norm, drop=_identity):
    return x.add_(drop(fn(norm(x))))


POST_NORM_SUBLAYER = _sublayer(
    post_norm_sublayer,
    (
        Mistake(
            name="is_pre_norm",
            title="computes x + drop(fn(norm(x))): pre-norm",
            means="That is the other design, which most models after 2019 use. This exercise asks "
            "for the order of 2017.",
            next_step="In post-norm, is the norm inside of the sum or around it?",
            versions=(lambda x, fn, norm, drop=_identity: x + drop(fn(norm(x))),),
            convention=True,
        ),
        Mistake(
            name="norm_on_branch_only",
            title="normalises the sub-layer's output and adds it to x",
            means="The stream itself then grows from layer to layer, unnormalised.",
            next_step="What is normalised: the branch, or the sum?",
            versions=(
                lambda x, fn, norm, drop=_identity: x + drop(norm(fn(x))),
                lambda x, fn, norm, drop=_identity: x + norm(drop(fn(x))),
            ),
        ),
        Mistake(
            name="skip_missing",
            title="does not add x",
            means="Without the residual the input has no direct way through.",
            next_step="The formula has a sum: what are its two terms?",
            versions=(lambda x, fn, norm, drop=_identity: norm(drop(fn(x))),),
        ),
        Mistake(
            name="norm_missing",
            title="does not normalise",
            means="The sum is right and then left as it is.",
            next_step="One argument is not used.",
            versions=(lambda x, fn, norm, drop=_identity: x + drop(fn(x)),),
        ),
        Mistake(
            name="norm_before_and_after",
            title="normalises before the sub-layer and after the sum",
            means="Some newer models do so. Here there is one norm, after the sum.",
            next_step="What does fn get: x itself, or norm(x)?",
            versions=(lambda x, fn, norm, drop=_identity: norm(x + drop(fn(norm(x)))),),
        ),
        Mistake(
            name="residual_after_norm",
            title="normalises x and the branch together, then adds x once more",
            means="The skip path is there twice.",
            next_step="How often does x stand in the formula?",
            versions=(lambda x, fn, norm, drop=_identity: x + norm(x + drop(fn(x))),),
        ),
        Mistake(
            name="skip_from_normalised",
            title="takes the residual from norm(x)",
            means="The residual is taken after the norm: x itself is lost on the way.",
            next_step="What is added is the sub-layer's own input.",
            versions=(
                lambda x, fn, norm, drop=_identity: (lambda n: n + drop(fn(n)))(norm(x)),
                lambda x, fn, norm, drop=_identity: norm(x) + drop(fn(x)),
                lambda x, fn, norm, drop=_identity: (lambda n: norm(n + drop(fn(n))))(norm(x)),
            ),
        ),
        Mistake(
            name="dropout_after_norm",
            title="drops after the norm",
            means="The stream itself would lose entries, in every layer.",
            next_step="Section 5.4: dropout comes before the sum.",
            versions=(lambda x, fn, norm, drop=_identity: drop(norm(x + fn(x))),),
        ),
        Mistake(
            name="dropout_on_sum",
            title="drops the sum",
            means="The skip path would lose entries too.",
            next_step="Section 5.4: dropout is applied to the sub-layer's output.",
            versions=(lambda x, fn, norm, drop=_identity: norm(drop(x + fn(x))),),
        ),
        Mistake(
            name="dropout_on_input",
            title="drops the sub-layer's input",
            means="fn then reads a damaged x.",
            next_step="Section 5.4: dropout is applied to the sub-layer's output.",
            versions=(lambda x, fn, norm, drop=_identity: norm(x + fn(drop(x))),),
        ),
        Mistake(
            name="dropout_on_skip",
            title="drops x and not the branch",
            means="The two terms have changed roles.",
            next_step="Section 5.4: dropout is applied to the sub-layer's output.",
            versions=(lambda x, fn, norm, drop=_identity: norm(drop(x) + fn(x)),),
        ),
        Mistake(
            name="dropout_missing",
            title="never calls drop",
            means="Dropout would never be applied.",
            next_step="One argument is not used.",
            versions=(lambda x, fn, norm, drop=_identity: norm(x + fn(x)),),
        ),
        Mistake(
            name="residual_from_output",
            title="adds the sub-layer's output to itself",
            means="x was overwritten before it was added.",
            next_step="Give the sub-layer's output a name of its own.",
            versions=(
                lambda x, fn, norm, drop=_identity: (lambda y: norm(y + y))(drop(fn(x))),
                lambda x, fn, norm, drop=_identity: norm(fn(x) + drop(fn(x))),
                lambda x, fn, norm, drop=_identity: (lambda y: norm(y + drop(y)))(fn(x)),
            ),
        ),
        Mistake(
            name="subtracts",
            title="subtracts the branch",
            means="The formula has a plus.",
            next_step="Compare the sign.",
            versions=(lambda x, fn, norm, drop=_identity: norm(x - drop(fn(x))),),
        ),
        Mistake(
            name="multiplies",
            title="multiplies x by the branch",
            means="The two meet in a sum.",
            next_step="Compare the sign between the two terms.",
            versions=(lambda x, fn, norm, drop=_identity: norm(x * drop(fn(x))),),
        ),
        Mistake(
            name="applies_twice",
            title="sends x through the sub-layer twice in a row",
            means="Once is what the formula asks for.",
            next_step="Count the calls of fn.",
            versions=(lambda x, fn, norm, drop=_identity: norm(x + drop(fn(fn(x)))),),
        ),
        Mistake(
            name="in_place",
            title="changes the caller's tensor",
            means="Who still holds x finds other numbers in it.",
            next_step="Write `x = x + ...`, not `x += ...`.",
            versions=(_in_place_post,),
        ),
        _twice(_doubling),
        _cut(
            "skip_detached",
            "lets no gradient through the skip path",
            "The direct way back is what the residual is for.",
            lambda x, fn, norm, drop=_identity: norm(x.detach() + drop(fn(x))),
        ),
        _cut(
            "branch_detached",
            "lets no gradient into the sub-layer",
            "The sub-layer would never learn.",
            lambda x, fn, norm, drop=_identity: norm(x + drop(fn(x)).detach()),
        ),
    ),
)

PRE_NORM_SUBLAYER = _sublayer(
    pre_norm_sublayer,
    (
        Mistake(
            name="is_post_norm",
            title="computes norm(x + drop(fn(x))): post-norm",
            means="That is the order of 2017. This exercise asks for the other design, in which "
            "the stream itself is never normalised.",
            next_step="What does fn get in pre-norm?",
            versions=(lambda x, fn, norm, drop=_identity: norm(x + drop(fn(x))),),
            convention=True,
        ),
        Mistake(
            name="skip_from_normalised",
            title="takes the residual from norm(x)",
            means="The residual is taken after the norm: the stream is normalised in every layer "
            "after all.",
            next_step="Which x is added: the one before the norm or the one after?",
            versions=(
                lambda x, fn, norm, drop=_identity: (lambda n: n + drop(fn(n)))(norm(x)),
                lambda x, fn, norm, drop=_identity: norm(x) + drop(fn(x)),
            ),
        ),
        Mistake(
            name="norm_missing",
            title="does not normalise",
            means="fn gets the raw stream.",
            next_step="One argument is not used.",
            versions=(lambda x, fn, norm, drop=_identity: x + drop(fn(x)),),
        ),
        Mistake(
            name="skip_missing",
            title="does not add x",
            means="Without the residual the input has no direct way through.",
            next_step="The formula has a sum: what are its two terms?",
            versions=(lambda x, fn, norm, drop=_identity: drop(fn(norm(x))),),
        ),
        Mistake(
            name="norm_before_and_after",
            title="normalises before the sub-layer and after the sum",
            means="There is one norm, before the sub-layer. A pre-norm stack has one more, at its "
            "very end.",
            next_step="Is the sum normalised in pre-norm?",
            versions=(lambda x, fn, norm, drop=_identity: norm(x + drop(fn(norm(x)))),),
        ),
        Mistake(
            name="norm_on_branch_output",
            title="normalises the sub-layer's output, not its input",
            means="fn gets the raw stream.",
            next_step="Pre means: before fn.",
            versions=(
                lambda x, fn, norm, drop=_identity: x + drop(norm(fn(x))),
                lambda x, fn, norm, drop=_identity: x + norm(drop(fn(x))),
            ),
        ),
        Mistake(
            name="residual_from_output",
            title="adds the sub-layer's output to itself",
            means="x was overwritten before it was added.",
            next_step="Give the sub-layer's output a name of its own.",
            versions=(
                lambda x, fn, norm, drop=_identity: (lambda y: y + y)(drop(fn(norm(x)))),
                lambda x, fn, norm, drop=_identity: (lambda y: y + drop(y))(fn(norm(x))),
            ),
        ),
        Mistake(
            name="dropout_on_sum",
            title="drops the sum",
            means="The skip path would lose entries, in every layer.",
            next_step="Dropout is applied to the sub-layer's output.",
            versions=(lambda x, fn, norm, drop=_identity: drop(x + fn(norm(x))),),
        ),
        Mistake(
            name="dropout_before_fn",
            title="drops what the sub-layer reads",
            means="fn then reads a damaged input.",
            next_step="Dropout is applied to the sub-layer's output.",
            versions=(
                lambda x, fn, norm, drop=_identity: x + fn(drop(norm(x))),
                lambda x, fn, norm, drop=_identity: x + fn(norm(drop(x))),
            ),
        ),
        Mistake(
            name="dropout_on_skip",
            title="drops x and not the branch",
            means="The two terms have changed roles.",
            next_step="Dropout is applied to the sub-layer's output.",
            versions=(lambda x, fn, norm, drop=_identity: drop(x) + fn(norm(x)),),
        ),
        Mistake(
            name="dropout_missing",
            title="never calls drop",
            means="Dropout would never be applied.",
            next_step="One argument is not used.",
            versions=(lambda x, fn, norm, drop=_identity: x + fn(norm(x)),),
        ),
        Mistake(
            name="subtracts",
            title="subtracts the branch",
            means="The formula has a plus.",
            next_step="Compare the sign.",
            versions=(lambda x, fn, norm, drop=_identity: x - drop(fn(norm(x))),),
        ),
        Mistake(
            name="multiplies",
            title="multiplies x by the branch",
            means="The two meet in a sum.",
            next_step="Compare the sign between the two terms.",
            versions=(lambda x, fn, norm, drop=_identity: x * drop(fn(norm(x))),),
        ),
        Mistake(
            name="applies_twice",
            title="sends x through the sub-layer twice in a row",
            means="Once is what the formula asks for.",
            next_step="Count the calls of fn.",
            versions=(lambda x, fn, norm, drop=_identity: x + drop(fn(fn(norm(x)))),),
        ),
        Mistake(
            name="in_place",
            title="changes the caller's tensor",
            means="Who still holds x finds other numbers in it.",
            next_step="Write `x = x + ...`, not `x += ...`.",
            versions=(_in_place_pre,),
        ),
        _twice(_doubling_pre),
        _cut(
            "skip_detached",
            "lets no gradient through the skip path",
            "The direct way back is what the residual is for.",
            lambda x, fn, norm, drop=_identity: x.detach() + drop(fn(norm(x))),
        ),
        _cut(
            "branch_detached",
            "lets no gradient into the sub-layer",
            "The sub-layer would never learn.",
            lambda x, fn, norm, drop=_identity: x + drop(fn(norm(x))).detach(),
        ),
    ),
)
