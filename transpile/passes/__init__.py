"""The passes, in order: this tuple is the outline of the optimiser. Each turns a kernel into an equal one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ..ir import Kernel
from .accumulate import accumulate
from .across import across
from .added import added
from .again import again
from .ahead import ahead
from .aside import aside
from .bits import bits
from .bounds import bounds
from .carry import carry
from .channels import channels
from .chosen import chosen
from .chunk import chunk
from .clipped import clipped
from .combed import combed
from .common import common
from .contract import contract
from .counted import counted
from .cutoff import cutoff
from .deepen import deepen
from .direct import direct
from .distribute import distribute
from .divisors import divisors
from .ease import ease
from .elements import elements
from .elide import elide
from .ends import ends
from .fills import fills
from .fission import fission
from .flatten import flatten
from .fold import fold
from .free import free
from .fuse import fuse
from .gangs import gangs
from .gathered import gathered
from .guards import guards
from .handful import handful
from .inline import inline
from .interchange import interchange
from .inward import inward
from .jam import jam
from .lanes import lanes
from .layout import layout
from .linear import linear
from .lives import lives
from .looked import looked
from .lulls import lulls
from .narrow import narrow
from .natural import natural
from .near import near
from .once import once
from .order import order, reorder
from .outward import outward
from .overlap import overlap
from .padded import padded
from .past import past
from .periods import periods
from .pieces import pieces
from .prior import prior
from .products import products
from .quotient import quotient
from .ranges import ranges
from .recalled import recalled
from .recur import recur
from .regroup import regroup
from .rows import rows
from .scatter import scatter
from .sections import sections
from .select import select
from .separable import separable
from .settled import settled
from .share import share
from .sheets import sheets
from .slabs import slabs
from .spans import spans
from .spent import spent
from .spills import spills
from .split import split
from .spread import spread
from .stacked import stacked
from .steady import steady
from .strands import strands
from .strides import strides
from .summed import summed
from .tables import tables
from .tally import tally
from .terms import terms
from .tidy import tidy
from .triangles import triangles
from .trusted import trusted
from .turn import turn
from .unroll import steps, unroll
from .usual import Versions
from .verify import IRError, verify
from .whole import whole
from .windows import windows
from .within import within
from .wrapped import wrapped

Pass = Callable[[Kernel], Kernel | Versions]

PASSES: tuple[tuple[str, Pass], ...] = (
    ("tidy", tidy),  # loops have their own variables
    ("lives", lives),  # ... and what is made anew has its own name
    ("fold", fold),  # x * 1 is x
    ("natural", natural),  # what is not negative is not cut off at zero
    ("whole", whole),  # a fraction of places, rounded down, is a place
    ("guards", guards),  # what a branch has asked is not checked inside
    ("again", again),  # ... and what was asked a moment ago, is not asked again
    ("spans", spans),  # a number that is given places only is one, whichever it is
    ("recalled", recalled),  # ... and what is looked up there is known where it is told
    ("ranges", ranges),  # where all indices are in range, none is checked
    ("prior", prior),  # what is read before a later step writes there is read from a copy
    ("cutoff", cutoff),  # what is looked up along a line that is cut off is looked up before it, and along it
    ("wrapped", wrapped),  # an index that wraps is a place around its axis
    ("ends", ends),  # what fails from some step on ends the loop there
    ("steady", steady),  # what is asked of an index that a loop does not change is asked before it
    ("settled", settled),  # ... and what all examples ask alike, before the loop over them
    ("aside", aside),  # what a loop adds at one place of what it goes along is added up beside it
    ("chosen", chosen),  # what two ways compute alike is computed once, of an argument that is chosen
    ("free", free),  # user loops with independent iterations are maps
    ("padded", padded),  # what windows look up at places held at an edge lies in an array
    ("clipped", clipped),  # windows that borders cut off are whole, and ask
    ("gathered", gathered),  # what places of a grid give to their neighbours, these take
    ("outward", outward),  # loops that jump through memory go outside
    ("across", across),  # ... and those that lie along it inside, with a row for each number
    ("periods", periods),  # what repeats in places is made together
    ("handful", handful),  # few turns over numbers of an element are written out
    ("sheets", sheets),  # what few sheets hold, gone over element by element, is an array for each
    ("fills", fills),  # what is stored as a whole is not filled before
    ("counted", counted),  # what is dear, and told by counters alone, has a table
    ("narrow", narrow),  # what is the same all along an axis has no such axis
    ("terms", terms),  # a product that is added beside something else is added on its own
    ("once", once),  # what no example changes is made before the loop over them
    ("looked", looked),  # ... and what is looked up where no example changes it
    ("summed", summed),  # what is linear in what each example leaves is made of the sum
    ("recur", recur),  # what a loop carries is alone in it, where the rest are products of matrices
    ("within", within),  # what is summed where windows are goes there only, a product of matrices
    ("fission", fission),  # what is a product of matrices for all iterations of a loop stands alone in it
    ("distribute", distribute),  # a vector times a matrix, for all examples or rows, is a matrix product
    ("products", products),  # sums of products are matrix products
    ("deepen", deepen),  # the gradient of what all steps share is one product
    ("scatter", scatter),  # what is scattered into zeros is scattered where their sum goes
    ("spills", spills),  # what all examples add to a whole axis is added up first
    ("stacked", stacked),  # matrices that products add to, across memory, lie along it
    ("regroup", regroup),  # what is seen in groups is gone over in groups
    ("linear", linear),  # what is linear in an earlier sum is summed beside it
    ("common", common),  # what all terms of a sum are multiplied by is left to the sum
    ("alone", once),  # ... and what is left of it may be what no example changes
    ("quotient", quotient),  # what divides a whole loop is inverted once
    ("tables", tables),  # what is dear is asked of each element once
    ("inline", inline),  # what is cheap is computed where it is used
    ("triangles", triangles),  # of a product that is masked, what is left is made
    ("direct", direct),  # a product is computed where its values go
    ("spent", spent),  # what nothing reads any more is not stored
    ("bounds", bounds),  # what a branch asks of a counter is where its loop goes
    ("pieces", pieces),  # what is written piece by piece is not cleared
    ("layout", layout),  # the axes of a private matrix lie as its loops like best
    ("order", order),  # the innermost loop runs along memory
    ("fuse", fuse),  # what runs over one space is one loop
    ("inward", inward),  # ... with windows inside
    ("rechosen", chosen),  # ... of what other loops had made, too
    ("slabs", slabs),  # what waits for sums over a batch goes over one channel after the other
    ("split", split),  # what is dear is vectorised on its own
    ("spread", spread),  # what belongs to a group of neighbours lies beside each of them
    ("jam", jam),  # rows of a product share what they load
    ("tally", tally),  # what counts few things counts in the numbers that it divides
    ("separable", separable),  # the largest of a window is that of its columns
    ("windows", windows),  # windows of a row are gone over outside of it
    ("combed", combed),  # ... and what they step along lies in a row for each place of a step
    ("steps", steps),  # ... and the short loops of scalar recurrences are written out
    ("lanes", lanes),  # scalar recurrences run sixteen examples at once
    ("contract", contract),  # what lives for one iteration needs no array
    ("elide", elide),  # what is made to be copied is made where the copy goes
    ("added", added),  # what is stored, and then added to, is stored with the sum
    ("unroll", unroll),  # small windows are written out
    ("elements", elements),  # ... and an array of which only known places are touched is so many variables
    ("reorder", reorder),  # ... so that the loop over windows runs along memory
    ("overlap", overlap),  # what windows add to one row is one loop
    ("strands", strands),  # rows that do not touch each other recur on their own
    ("turn", turn),  # a matrix that products in a loop read across is turned once
    ("flatten", flatten),  # loops over contiguous memory are one
    ("sections", sections),  # what chooses by its place along a row is a loop for each choice
    ("carry", carry),  # sums of short rows are carried over many of them
    ("lulls", lulls),  # a number that seldom changes stands still for a few steps
    ("trusted", trusted),  # whether all places that a row looks up are there is asked before it
    ("accumulate", accumulate),  # sums run in registers, and in blocks
    ("select", select),  # what a branch adds is chosen
    ("ease", ease),  # tanh(log1p(v)) is a quotient
    ("divisors", divisors),  # what another quotient has a part of is a product with it
    ("share", share),  # nothing is computed twice, or in a loop that does not change it
    ("channels", channels),  # what is looked up for all channels is turned, so that they lie side by side
    ("interchange", interchange),  # loops run along memory, where a loop in a loop jumped
    ("chunk", chunk),  # the outermost loops run in parallel
    ("gangs", gangs),  # what rows end with is computed for many rows at once
    ("strides", strides),  # where a stride is 1, vectors
    ("near", near),  # angles are near, which costs half
    ("rows", rows),  # the largest of neighbours in memory is asked for on its own
    ("bits", bits),  # what is taken or 0 is masked
    ("ahead", ahead),  # where rows are gone over backwards, the next ones are fetched
    ("past", past),  # what is written and not read again goes past the caches, where much is moved
)

NAMES = tuple(name for name, _ in PASSES)
# From the windows on, passes write a loop twice: for vectors and what is left of them, for two ways of a branch.
WITH_OWN_LOOPS = NAMES[: NAMES.index("windows")]


def run(kernel: Kernel, upto: str | None = None, trace: Callable[[str, Kernel], None] | None = None) -> Kernel:
    """Runs the passes up to and with `upto` (None: all), and verifies what each has changed. `trace(name, kernel)`
    sees every stage, "lower" first. A fault names the pass that made it."""
    if upto is not None and upto not in ("lower", *NAMES):
        raise ValueError(f"no pass {upto!r}; there are: lower, {', '.join(NAMES)}")
    made = Versions.of(verify(kernel))
    for name, function in (("lower", verify), *PASSES):
        try:
            made = made.map(partial(_checked, function, name in WITH_OWN_LOOPS))
        except IRError as fault:
            raise IRError(f"after pass {name}: {fault}") from None
        if trace:
            trace(name, made.joined())
        if name == upto:
            break
    return made.joined()


def _checked(function: Pass, own_loops: bool, kernel: Kernel) -> Kernel | Versions:
    changed = function(kernel)
    if isinstance(changed, Versions):
        return changed.map(partial(verify, own_loops=own_loops))
    return verify(changed, own_loops) if changed != kernel else kernel


__all__ = ["NAMES", "PASSES", "IRError", "run", "verify"]
