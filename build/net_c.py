"""A net's schedule (`layerc.runtime.plan.data`) as C text and header: `predict` and `train_step` are functions of calls
and loops over one arena; the layers' kernels stand before them, the support of `net.h` behind.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from layerc.build.net_kernels import Kernels
from layerc.build.net_maps import C_TYPES, ELEMENTWISE, c_name, literal, number_text
from layerc.transpile import emit


def c_file(net: Mapping[str, Any], prefix: str, title: str, version: str) -> str:
    """The C text of the whole."""
    kernels = Kernels(net, version)
    text = kernels.text()
    here = Path(emit.__file__).parent
    support = (here / "support.h").read_text(encoding="utf-8")
    if "lc_draw_" in text:
        support += (here / "random.h").read_text(encoding="utf-8")
    own = (Path(__file__).parent / "net.h").read_text(encoding="utf-8")
    functions = [_Function(net, name, prefix, kernels).text() for name in ("predict", "train") if net[name]]
    parts = [
        f"/* {emit.plain(title)} */\n{_TOP}{emit.CALL}",
        (here / "math.h").read_text(encoding="utf-8"),
        support,
        *emit.templates(text),
        f"/* -- the layers' kernels {'-' * 80} */",
        text,
        f"/* -- the net {'-' * 92} */",
        f'#include "{prefix}.h"\n',
        _tables(net, prefix),
        own,
        *functions,
    ]
    return "\n".join(parts)


_TOP = """\
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
"""


def header(net: Mapping[str, Any], prefix: str, title: str) -> str:
    """The plain C header."""
    guard = f"LC_NET_{prefix.upper()}_H"
    lines = [f"/* {emit.plain(title)} */", f"#ifndef {guard}", f"#define {guard}", "#include <stdint.h>", ""]
    lines += [f"/* {line} */" for line in _story(net, prefix)]
    lines += ["", "#ifdef __cplusplus", 'extern "C" {', "#endif", *prototypes(net, prefix)]
    return "\n".join([*lines, "#ifdef __cplusplus", "}", "#endif", "#endif", ""])


def _story(net: Mapping[str, Any], prefix: str) -> list[str]:
    sizes = [f"{p['name']} (batch{''.join(f', {n}' for n in p['shape'])})" for p in net["predict"]["inputs"]]
    out = [f"{p['name']} (batch{''.join(f', {n}' for n in p['shape'])})" for p in net["predict"]["outputs"]]
    story = [
        f"{prefix}_predict: {', '.join(sizes)} -> {', '.join(out)}, row-major.",
        "Functions return 0, or a code; the message then says what went wrong. Several threads need a net each.",
    ]
    if net["train"]:
        story.append(f"{prefix}_train_step: forward, backward, and one update by {net['solver']}.")
    return story


CODES = ("OK", "MEMORY", "ARGUMENT", "FILE", "WEIGHTS", "VALUE", "INDEX", "NAN")


def prototypes(net: Mapping[str, Any], prefix: str, for_cffi: bool = False) -> list[str]:
    """The functions' declarations; for cffi, arrays are `void *`."""
    codes = ", ".join(f"{prefix.upper()}_{code} = {k}" for k, code in enumerate(CODES))

    def arguments(function: Mapping[str, Any]) -> str:
        found = []
        for ports, const in ((function["inputs"], "const "), (function["outputs"], "")):
            for p in ports:
                ctype = "void" if for_cffi else C_TYPES[p["dtype"]]
                found.append(f"{const}{ctype} *{c_name(p['name'])}")
        return ", ".join([f"struct {prefix} *net", *found, "int64_t batch"])

    lines = [
        f"enum {{ {codes} }};",
        f"struct {prefix};",
        f"struct {prefix} *{prefix}_open(void); /* with parameters of zero; NULL: no memory */",
        f"void {prefix}_close(struct {prefix} *net);",
        f"const char *{prefix}_message(const struct {prefix} *net);",
        f"int {prefix}_load_safetensors(struct {prefix} *net, const char *path); /* all, or nothing */",
        f"int {prefix}_save_safetensors(struct {prefix} *net, const char *path);",
        f"int {prefix}_tensors(const struct {prefix} *net); /* how many parameters and states there are */",
        f"const char *{prefix}_tensor_name(const struct {prefix} *net, int k);",
        f"void *{prefix}_tensor_data(struct {prefix} *net, int k); /* row-major; may be written to */",
        f"int64_t {prefix}_arena_size(int64_t batch, int training); /* bytes; -1: no such batch */",
        f"void {prefix}_set_threads(struct {prefix} *net, int threads);",
        f"int {prefix}_predict({arguments(net['predict'])});",
    ]
    if net["train"]:
        lines += [
            "/* loss: of this batch, regularizers included, before the update; NULL if nobody asks. */",
            f"int {prefix}_train_step({arguments(net['train'])}, double *loss);",
            "/* In place of the solver's own from the next step on; NaN: the solver's again. */",
            f"void {prefix}_set_learning_rate(struct {prefix} *net, double rate);",
            f"void {prefix}_set_momentum(struct {prefix} *net, double momentum);",
            f"int64_t {prefix}_iteration(const struct {prefix} *net); /* steps done */",
        ]
    return [re.sub(r" ?/\*.*?\*/", "", line) for line in lines if not line.startswith("/*")] if for_cffi else lines


# -- tables ---------------------------------------------------------------------------------------------------


def _tables(net: Mapping[str, Any], prefix: str) -> str:
    """What `net.h` is about: tensors, memory that stays, sizes, errors of kernels."""
    kept = net["kept"]
    upper = prefix.upper()
    lines = [
        f"#define NET struct {prefix}",
        f"#define NET_FN(name) {prefix}_##name",
        f"#define NET_CODE(name) {upper}_##name",
    ]
    widest = max(sum(map(abs, b["size"])) for f in _functions(net) for b in f["buffers"] if isinstance(b["size"], list))
    lines += [f"#define LCN_WIDEST {8 * widest}", f"#define LCN_TRAINS {int(bool(net['train']))}"]
    lines += ["typedef struct { const char *name, *shape; int type; int kept; int64_t offset, count; } lcn_tensor;"]
    names = list(kept)
    rows = []
    for h in net["held"]:
        count = _product(h["shape"])
        shape = ",".join(map(str, h["shape"]))
        fields = [_quoted(h["name"]), f'"{shape}"', _TYPES[h["dtype"]], names.index(h["buffer"]), h["offset"], count]
        rows.append(f"    {{{', '.join(map(str, fields))}}},")
    lines += ["static const lcn_tensor lcn_tensors[] = {", *rows, "    {0, 0, 0, 0, 0, 0}", "};"]
    lines += [f"#define LCN_TENSORS {len(rows)}"]
    trains = [name == "gradients" or name.startswith("history ") for name in names]
    sizes = ", ".join(f"{size} * (int64_t)sizeof({C_TYPES[dtype]})" for size, dtype in kept.values())
    lines += [f"#define LCN_KEPT {len(kept)}", f"static const int64_t lcn_kept_bytes[] = {{{sizes}, 0}};"]
    lines += [f"static const char lcn_kept_trains[] = {{{', '.join(str(int(t)) for t in trains)}, 0}};"]
    for name in ("predict", "train"):
        a, b = net[name]["arena"] if net[name] else (0, 0)
        lines.append(f"static const int64_t lcn_{name}_arena[] = {{{a}, {b}}};")
    lines.append("typedef struct { int number, code; const char *message; } lcn_error;")
    for number, package in enumerate(net["packages"]):
        rows = []
        for e in package["errors"]:
            text = f"{e['file']}:{e['line']}: {e['layer']}: {e['message']}"
            code = f"{prefix.upper()}_{'INDEX' if e['exception'] == 'IndexError' else 'VALUE'}"
            rows.append(f"    {{{e['number']}, {code}, {_quoted(text)}}},")
        lines += [f"static const lcn_error lcn_errors_{number}[] = {{", *rows, "    {0, 0, 0}", "};"]
    return "\n".join(lines) + "\n"


_TYPES = {"float32": 0, "float64": 1, "int64": 2, "int32": 3, "bool": 4}


def _functions(net: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [net[name] for name in ("predict", "train") if net[name]]


def _quoted(text: str) -> str:
    """A C string; what is not plain ASCII as octal bytes, which cannot run on into what follows."""
    plain = (chr(b) if 32 <= b < 127 and chr(b) not in '"\\?' else f"\\{b:03o}" for b in text.encode())
    return f'"{"".join(plain)}"'


def _product(sizes: Sequence[int]) -> int:
    product = 1
    for n in sizes:
        product *= n
    return product


# -- functions ------------------------------------------------------------------------------------------------


MOST_SHARED = 4 << 20  # bytes of parameters that each thread may read for itself


def _in_parts(net: Mapping[str, Any], function: Mapping[str, Any]) -> bool:
    """Whether parts of a batch may be computed apart, and parameters are so small that all threads may read them."""
    size, dtype = net["kept"]["parameters"]
    plain = all(
        op["op"] in ("kernel", "map")
        and all(function["buffers"][v["buffer"]]["kind"] in ("arena", "output") for v in _writes(op))
        for op in function["ops"]
    )
    small = size * np.dtype(dtype).itemsize <= MOST_SHARED
    return bool(function["is_per_example"] and plain and small and not function["draws"])


def _writes(op: Mapping[str, Any]) -> Sequence[Any]:
    return op["writes"] if op["op"] == "kernel" else [op["write"]]


class _Function:
    """`predict` or `train_step`."""

    def __init__(self, net: Mapping[str, Any], name: str, prefix: str, kernels: Kernels) -> None:
        self.net, self.name, self.prefix, self.kernels = net, name, prefix, kernels
        self.f: Mapping[str, Any] = net[name]
        self.lines: list[str] = []
        self.constants: list[str] = []

    def put(self, text: str, depth: int = 1) -> None:
        self.lines.append("    " * depth + text)

    def text(self) -> str:
        f, prefix = self.f, self.prefix
        training = self.name == "train"
        title = "train_step" if training else "predict"
        line = next(p for p in prototypes(self.net, prefix) if f"{prefix}_{title}(" in p)
        head = line.rstrip(";")
        ports = [c_name(p["name"]) for p in (*f["inputs"], *f["outputs"])]
        begin = [
            f"    const void *const given[] = {{{', '.join(ports)}}};",
            f"    int code = lcn_begin(net, batch, given, {len(ports)}, {f['least']}, {_quoted(f['why'])}, "
            f"{int(training)});",
            "    if (code) return code;",
        ]
        whole = []
        if _in_parts(self.net, f):
            sizes = [_product(p["shape"]) for p in (*f["inputs"], *f["outputs"])]
            whole = self.in_parts(head, begin, ports, sizes)
            head = head.replace(f"int {prefix}_{title}(", "static int lcn_part(")
            begin = ["    int code;"]
        self.lines += begin
        if training:
            self.put("const double learning_rate = net->learning_rate, momentum = net->momentum;")
            self.put("(void)learning_rate; (void)momentum;")
        self.put("const int64_t iteration = net->iteration;")
        self.put("(void)iteration;")
        self.buffers()
        where = None
        for op in f["ops"]:
            if op["where"] != where:
                where = op["where"]
                self.lines.append("")
                self.put(f"/* {emit.plain(where)} */")
            getattr(self, "op_" + op["op"])(op)
        self.lines.append("")
        if training:
            self.put(f"if (loss) *loss = {self.node(f['result'])};")
            self.put("net->iteration++;")
        self.put(f"return {prefix.upper()}_OK;")
        return "\n".join([*self.constants, "LCN_EXACT", head, "{", *self.lines, "}", *whole, ""])

    def in_parts(self, head: str, begin: list[str], ports: list[str], sizes: list[int]) -> list[str]:
        """The function that lets each thread take some of the examples through all layers."""
        some = ", ".join(f"{p} + from * {n}" for p, n in zip(ports, sizes))
        return [
            *("", head, "{", *begin),
            "    const int64_t parts = lcn_parts(net, batch);",
            "    if (parts > 1) {",
            "        int failed = 0;",
            "        const lc_caller caller = lc_calling(parts);",
            "#pragma omp parallel for schedule(static) num_threads(parts) reduction(|:failed)",
            "        for (int64_t p = 0; p < parts; p++) {",
            "            const unsigned mode = lc_join(caller);",
            "            const int64_t from = batch * p / parts, count = batch * (p + 1) / parts - from;",
            f"            struct {self.prefix} own = *net;",
            "            own.call.threads = 1;",
            "            own.arena = lcn_arena_of(net, p, from);",
            f"            failed |= lcn_part(&own, {some}, count);",
            "            lc_round_again(mode);",
            "        }",
            "        if (!failed) return code;",
            "    }",
            f"    return lcn_part(net, {', '.join(ports)}, batch); /* also to say what failed first */",
            "}",
        ]

    def buffers(self) -> None:
        names = list(self.net["kept"])
        for k, b in enumerate(self.f["buffers"]):
            ctype = C_TYPES[b["dtype"]]
            if b["kind"] == "arena":
                grows, place = b["place"]
                at = number_text([place, 0] if grows else [self.f["arena"][0], place])
                owner = emit.plain(b["name"])
                self.put(f"{ctype} *const b{k} = ({ctype} *)(net->arena + {at}); /* {owner} */")
            elif b["kind"] == "kept":
                self.put(f"{ctype} *const b{k} = ({ctype} *)net->kept[{names.index(b['name'])}]; /* {b['name']} */")
            elif b["kind"] == "const":
                name = f"lcn_{self.name}_c{k}"
                values = ", ".join(literal(v, b["dtype"]) for v in b["data"]) or "0"
                self.constants.append(f"static const {ctype} {name}[] = {{{values}}};")
                self.put(f"const {ctype} *const b{k} = {name};")
            else:
                const = "const " if b["kind"] == "input" else ""
                self.put(f"{const}{ctype} *const b{k} = {c_name(b['name'])};")

    # -- operations ----------------------------------------------------------------------------------------------

    def op_kernel(self, op: Mapping[str, Any]) -> None:
        name, scalars = self.kernels.call(op)
        arguments = [self.node(n) for n in scalars]
        arguments += [self.address(v) for v in (*op["reads"], *op["writes"])]
        self.put(f"code = {name}({', '.join([*arguments, '&net->call'])});")
        where = _quoted(op["where"])
        self.put(f"if (code) return lcn_failed(net, code, lcn_errors_{op['package']}, {where});")

    def op_map(self, op: Mapping[str, Any]) -> None:
        views = [a for a in op["args"] if isinstance(a, dict)]
        write = op["write"]
        loop = _Loop(write["shape"], [v["strides"] for v in (write, *views)])
        texts, at = [], 1
        self.put("{")
        for k, (a, dtype) in enumerate(zip(op["args"], op["types"])):
            ctype = C_TYPES[dtype]
            if isinstance(a, dict):
                element = f"{self.base(a)}[{loop.index(at)}]"
                at += 1
                converted = f"({element} != 0)" if dtype == "bool" else f"({ctype}){element}"
                texts.append(element if dtype == self.dtype(a) else converted)
            else:
                self.put(f"const {ctype} x{k} = ({ctype}){self.node(a)};", 2)
                texts.append(f"x{k}")
        value = ELEMENTWISE[op["function"]](texts, op["types"])
        self.open(loop, 1)
        target = f"{self.base(write)}[{loop.index(0)}]"
        self.put(f"{target} = ({C_TYPES[op['types'][-1]]})({value});", 2 + loop.depth)
        self.close(loop, 1)
        self.put("}")

    def op_sum(self, op: Mapping[str, Any]) -> None:
        arg, write = op["arg"], op["write"]
        ctype = C_TYPES[self.dtype(write)]
        if all(s == 0 for s in write["strides"]) and _contiguous(arg) and ctype in ("float", "double"):
            kinds = f"{self.dtype(arg)}_{self.dtype(write)}"
            self.put(f"{self.address(write)[0:]}[0] = lcn_sum_{kinds}({self.address(arg)}, {_count(arg['shape'])});")
            return
        zero = _Loop([n if s else 1 for n, s in zip(write["shape"], write["strides"])], [write["strides"]])
        self.open(zero)
        self.put(f"{self.base(write)}[{zero.index(0)}] = 0;", 1 + zero.depth)
        self.close(zero)
        loop = _Loop(arg["shape"], [write["strides"], arg["strides"]], whole=False)
        self.open(loop)
        self.put(f"{self.base(write)}[{loop.index(0)}] += ({ctype}){self.base(arg)}[{loop.index(1)}];", 1 + loop.depth)
        self.close(loop)

    def op_let(self, op: Mapping[str, Any]) -> None:
        value = op["value"]
        text = f"{self.base(value)}[0]" if isinstance(value, dict) else self.node(value)
        self.put(f"const {_KINDS[op['kind']]} {op['name']} = {text};")

    def op_range(self, op: Mapping[str, Any]) -> None:
        view = op["view"]
        loop = _Loop(view["shape"], [view["strides"]])
        low, high = number_text(op["low"]), number_text(op["high"])
        skip = "" if op["skip"] is None else f" && i != {op['skip']}"
        self.open(loop)
        self.put(f"const int64_t i = (int64_t){self.base(view)}[{loop.index(0)}];", 1 + loop.depth)
        message = _quoted(op["message"])
        code = f"{self.prefix.upper()}_INDEX"
        self.put(
            f"if ((i < {low} || i >= {high}){skip}) return lcn_outside(net, {code}, {message}, i);", 1 + loop.depth
        )
        self.close(loop)

    def op_trap(self, op: Mapping[str, Any]) -> None:
        code = f"{self.prefix.upper()}_{op['code'].upper()}"
        self.put(f"if ({self.node(op['condition'])}) return lcn_say(net, {code}, {_quoted(op['message'])});")

    # -- words ---------------------------------------------------------------------------------------------------

    def dtype(self, view: Mapping[str, Any]) -> str:
        return str(self.f["buffers"][view["buffer"]]["dtype"])

    def base(self, view: Mapping[str, Any]) -> str:
        address = self.address(view)
        return address if address.isidentifier() else f"({address})"

    def address(self, view: Mapping[str, Any]) -> str:
        name, offset = f"b{view['buffer']}", number_text(view["offset"])
        return name if offset == "0" else f"{name} + {offset}"

    def open(self, loop: "_Loop", inside: int = 0) -> None:
        for k, extent in enumerate(loop.extents):
            brace = " {" if k + 1 == loop.depth else ""
            self.put(f"for (int64_t i{k} = 0; i{k} < {number_text(extent)}; i{k}++){brace}", 1 + inside + k)
        if not loop.depth:
            self.put("{", 1 + inside)

    def close(self, loop: "_Loop", inside: int = 0) -> None:
        self.put("}", inside + max(loop.depth, 1))

    def node(self, node: Any) -> str:
        """An expression."""
        kind, *rest = node
        if kind == "const":
            return literal(rest[0], "float64" if isinstance(rest[0], float) else "int64")
        if kind == "extent":
            return number_text(rest)
        if kind == "name":
            return str(rest[0])
        if kind == "seed":
            stream = self.f["draws"][rest[0]]
            count = f"{stream['count'] + rest[1]} + iteration * {stream['each']}"
            return f"lcn_seed(UINT64_C({stream['root']}), (uint64_t)({count}))"
        a = [self.node(n) for n in rest]
        return _NODES[kind](*a)


_KINDS = {"float": "double", "int": "int64_t", "bool": "int"}
_NODES: dict[str, Any] = {
    **{
        name: (lambda x, y, sign=sign: f"({x} {sign} {y})")
        for name, sign in (
            ("add", "+"),
            ("sub", "-"),
            ("mul", "*"),
            ("lt", "<"),
            ("le", "<="),
            ("gt", ">"),
            ("ge", ">="),
            ("eq", "=="),
            ("ne", "!="),
        )
    },
    "div": lambda x, y: f"((double){x} / (double){y})",
    "floordiv": lambda x, y: f"floor((double){x} / (double){y})",
    "floordiv_int": lambda x, y: f"lc_floor_div_i64({x}, {y})",
    "mod": lambda x, y: f"lc_mod_i64({x}, {y})",
    "pow": lambda x, y: f"pow({x}, {y})",
    "neg": lambda x: f"(-{x})",
    "sqrt": lambda x: f"sqrt({x})",
    "cos": lambda x: f"cos({x})",
    "isnan": lambda x: f"isnan({x})",
    "choose": lambda c, x, y: f"({c} ? {x} : {y})",
}


class _Loop:
    """Loops over a shape: neighbouring axes that all operands step through alike are one."""

    def __init__(self, shape: Sequence[Any], strides: Sequence[Sequence[Any]], whole: bool = True) -> None:
        self.extents: list[Any] = []
        self.strides: list[list[Any]] = [[] for _ in strides]
        for k, n in enumerate(shape):
            if n == 1:
                continue
            steps = [s[k] for s in strides]
            if self.extents and all(own[-1] == _times(n, s) for own, s in zip(self.strides, steps)):
                self.extents[-1] = _times(self.extents[-1], n)
                for own, s in zip(self.strides, steps):
                    own[-1] = s
                continue
            self.extents.append(n)
            for own, s in zip(self.strides, steps):
                own.append(s)
        self.depth = len(self.extents)

    def index(self, which: int) -> str:
        terms = []
        for k, step in enumerate(self.strides[which]):
            if step != 0:
                terms.append(f"i{k}" if step == 1 else f"i{k} * {number_text(step)}")
        return " + ".join(terms) or "0"


def _times(a: Any, b: Any) -> Any:
    """Product of integers a N + b; None where it is none."""
    if isinstance(a, list) and isinstance(b, list):
        return None
    if isinstance(a, list) or isinstance(b, list):
        pair, n = (a, b) if isinstance(a, list) else (b, a)
        return [pair[0] * n, pair[1] * n] if n else 0
    return a * b


def _count(shape: Sequence[Any]) -> str:
    count: Any = 1
    for n in shape:
        count = _times(count, n)
    return number_text(count)


def _contiguous(view: Mapping[str, Any]) -> bool:
    return _Loop(view["shape"], [view["strides"]]).strides in ([[]], [[1]])
