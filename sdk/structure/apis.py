"""Library functions by what they do: the job a call does besides the training, and whether it waits.

The table is keyed by dotted names: as a script writes them ("torch.save") and as the running interpreter
knows the function ("torch.serialization.save").
"""

from __future__ import annotations

from functools import cache

_METHODS = "?"
"""A pattern that begins with this is a method of an object of unknown class."""
_JOBS: dict[str, tuple[str, ...]] = {
    "sleep": ("time.sleep",),
    "gc": ("gc.collect", "torch.cuda.empty_cache", "torch.cuda.memory.empty_cache", "*._cuda_emptyCache"),
    "clip": ("torch.nn.utils.clip_grad*", "*.clip_grad_norm_", "*.clip_grad_value_"),
    "save": (
        "torch.save", "torch.serialization.save", "torch.jit.save", "torch.jit._serialization.save",
        "torch.distributed.checkpoint.*save*", "pickle.dump", "_pickle.dump", "joblib.dump",
        "joblib.numpy_pickle.dump", "numpy.save*", "numpy.lib.*.save*", "safetensors*.save*",
        "*.save_pretrained", "lightning*.save_checkpoint", "*.Accelerator*.save_state", "torch.export.save",
    ),
    "copy": ("copy.deepcopy", "copy.copy", "?.load_state_dict", "torch.nn.*.load_state_dict"),
    "plot": (
        "matplotlib.*", "seaborn.*", "plotly.*", "?.savefig", "torchvision.utils.save_image",
        "torchvision.utils.make_grid", "PIL.*.save",
    ),
    "log": (
        "builtins.print", "logging.*", "warnings.warn", "wandb.*", "mlflow.*", "neptune.*", "comet_ml.*",
        "clearml.*", "aim.*", "torch.utils.tensorboard.*", "tensorboardX.*", "loguru.*", "structlog.*",
        "rich.*", "tqdm.*.set_*", "tqdm.*.write", "tqdm.*.refresh", "tqdm.*.update", "sys.stdout*.write",
        "sys.stdout*.flush", "sys.stderr*.write", "?.add_scalar", "?.add_histogram",
    ),
    "file": (
        "os.fsync", "posix.fsync", "os.sync", "posix.sync", "os.replace", "posix.replace", "os.rename",
        "posix.rename", "shutil.*", "json.dump", "json.dumps", "json.encoder.*", "csv.*", "_csv.*",
        "*.to_csv", "*.to_parquet", "*.to_json", "*.to_pickle", "builtins.open", "io.open", "_io.open",
        "*TextIOWrapper.write*", "*TextIOWrapper.flush", "*BufferedWriter.write*", "*BufferedWriter.flush",
        "tempfile.*", "builtins.open().*write*", "builtins.open().flush", "pathlib.*.write_*",
        "pathlib.*.open", "yaml.*dump",
    ),
    "metrics": ("sklearn.metrics.*", "torchmetrics.*", "torcheval.*", "evaluate.*", "scipy.stats.*"),
    "process": ("subprocess.*", "os.system", "posix.system", "os.popen", "os.spawn*", "_posixsubprocess.*"),
    "network": (
        "requests.*", "urllib.*", "http.client.*", "socket.*", "_socket.*", "boto3.*", "botocore.*",
        "httpx.*", "aiohttp.*", "ssl.*", "_ssl.*", "ftplib.*", "paramiko.*", "redis.*", "grpc.*",
    ),
    "hash": ("hashlib.*", "_hashlib.*", "_sha*", "_md5*", "zlib.crc32", "zlib.adler32"),
    "shuffle": (
        "torch.randperm", "numpy.random.permutation", "numpy.random.shuffle", "numpy.random.*().permutation",
        "numpy.random.*().shuffle", "numpy.random.choice", "numpy.random.*().choice", "random.shuffle",
        "random.sample", "random.Random.shuffle", "random.Random.sample",
    ),
    "sort": (
        "builtins.sorted", "torch.sort", "torch.argsort", "torch.unique", "torch.bincount", "numpy.sort",
        "numpy.argsort", "numpy.unique", "numpy.bincount", "?.argsort", "collections.Counter",
    ),
    "read": (
        "builtins.open().read*", "*.read_text", "*.read_bytes", "PIL.Image.open", "h5py.*", "sqlite3.*",
        "_sqlite3.*", "numpy.load", "torch.load", "pandas.read_*", "lmdb.*", "select.*", "selectors.*",
    ),
    "sync": (
        "torch.Tensor.item", "torch.Tensor.tolist", "torch.Tensor.cpu", "torch.Tensor.numpy", "?.item",
        "?.tolist", "?.cpu", "?.numpy", "torch.cuda.synchronize", "torch.*._cuda_synchronize",
    ),
    "norm": (
        "torch.norm", "torch.functional.norm", "torch.linalg.norm", "torch.linalg.vector_norm",
        "torch._foreach_norm", "torch.nn.utils.get_total_norm", "?.norm", "torch.Tensor.norm",
        "torch._tensor.Tensor.norm",
    ),
}  # fmt: skip
_NOT = ("*.__iter__", "*.__next__", "tqdm.*.__*")
"""Iterating through a library is not its job; what is iterated is."""
ORDER = tuple(_JOBS)
"""Precedence of jobs if a line does several: a line that prints a value read from a tensor prints."""
BLOCKING = frozenset(("sleep", "save", "file", "process", "network", "read"))
"""Jobs in which the thread waits, or may wait, for something outside."""
SINKS = frozenset(("sleep", "gc", "save", "plot", "log", "file", "process", "network"))
"""Jobs whose calls change nothing the training reads: they only pass values to the outside."""
_RANDOM = (
    "torch.rand*", "torch.normal", "torch.bernoulli", "torch.multinomial", "torch.poisson", "numpy.random.*",
    "random.*", "torch.distributions.*", "torch.nn.functional.*dropout*", "?.random_", "?.normal_",
    "?.uniform_", "?.bernoulli*", "?.exponential_", "?.multinomial", "torch.Tensor.random_",
    "torch.Tensor.normal_", "torch.Tensor.uniform_", "torch.Tensor.bernoulli*", "secrets.*", "uuid.*",
    "torchvision.transforms.Random*", "os.urandom", "posix.urandom",
)  # fmt: skip
_UPDATES = (
    "?.backward", "torch.autograd.backward", "torch.Tensor.backward", "torch._tensor.Tensor.backward",
    "?.manual_backward", "accelerate.*.backward", "?.step", "?.zero_grad", "torch.optim.*.step",
    "torch.optim.*.zero_grad", "torch.amp.GradScaler*", "torch.cuda.amp.GradScaler*",
    "torch.amp.grad_scaler.*", "torch.distributed.all_*", "torch.distributed.barrier",
    "torch.distributed.broadcast*", "torch.distributed.*reduce*", "torch.distributed.*gather*",
    "torch.distributed.scatter*", "torch.manual_seed", "torch.set_default*", "torch.set_rng_state",
    "torch.nn.utils.clip_grad*", "torch.optim.swa_utils.*().*",
)  # fmt: skip
_DERIVES = (
    *("torch.autograd.grad", "torch.autograd.functional.*"),
    *(
        f"{module}.{name}*"
        for module in ("torch.func", "functorch")
        for name in ("grad", "vjp", "jvp", "jac", "hess")
    ),
)
_NO_GRAD = (
    "torch.no_grad*",
    "torch.inference_mode*",
    "torch.autograd.no_grad*",
    "torch.autograd.grad_mode.*",
)


class _Names:
    """Dotted names, some with `*` for anything. Compiling them as regular expressions would cost a run tens
    of milliseconds, for a few hundred lookups."""

    def __init__(self, patterns: tuple[str, ...]) -> None:
        parts = [one.split("*") for one in patterns]
        self._whole = frozenset(one[0] for one in parts if len(one) == 1)
        self._starts = tuple(one[0] for one in parts if len(one) == 2 and not one[1])
        self._parts = [one for one in parts if len(one) > 2 or (len(one) == 2 and one[1])]

    def match(self, name: str) -> bool:
        return (
            name in self._whole
            or name.startswith(self._starts)
            or any(_fits(name, parts) for parts in self._parts)
        )


def _fits(name: str, parts: list[str]) -> bool:
    """Whether the parts occur in this order: the first at the beginning, the last at the end."""
    at, end = len(parts[0]), len(name) - len(parts[-1])
    if at > end or not (name.startswith(parts[0]) and name.endswith(parts[-1])):
        return False
    for part in parts[1:-1]:
        found = name.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return True


_BY_JOB = {job: _Names(patterns) for job, patterns in _JOBS.items()}
_BY_FLAG = {
    flag: _Names(patterns)
    for flag, patterns in {
        "random": _RANDOM,
        "update": _UPDATES,
        "no_grad": _NO_GRAD,
        "not": _NOT,
        "derives": _DERIVES,
    }.items()
}


def _spellings(api: str) -> tuple[str, ...]:
    """The names a call may have in the table. "torch.optim.Adam().step" is "torch.optim.Adam.step" and,
    since a function may return an object of any class, "?.step"."""
    _, made, method = api.rpartition("().")
    return (api, api.replace("()", ""), f"{_METHODS}.{method}") if made else (api,)


@cache
def job(api: str) -> str:
    """What a library function does besides the training; empty if it is not in the table."""
    if _BY_FLAG["not"].match(api):
        return ""
    found = (kind for name in _spellings(api) for kind, names in _BY_JOB.items() if names.match(name))
    return next(found, "")


@cache
def _flagged(flag: str, api: str) -> bool:
    return any(_BY_FLAG[flag].match(name) for name in _spellings(api))


def draws(api: str) -> bool:
    """Whether it returns something random."""
    return _flagged("random", api)


def updates(api: str) -> bool:
    """Whether it is part of the update: gradients, the optimizer, clipping, other ranks, torch's state."""
    return _flagged("update", api)


def may_move(api: str) -> bool:
    """Whether it may be the `step` of an environment: a method of something that is not torch's."""
    return updates(api) and api.rpartition(".")[2] == "step" and not api.startswith("torch.")


def optimizes(api: str) -> bool:
    """Whether it is an optimizer of torch's that was made."""
    return api.endswith("()") and makes_optimizer(api.removesuffix("()"))


def differentiates(api: str) -> bool:
    """Whether it computes the gradients of a loss."""
    return updates(api) and api.rpartition(".")[2] in ("backward", "manual_backward")


def derives(api: str) -> bool:
    """Whether it computes gradients and returns them."""
    return _flagged("derives", api)


def makes_optimizer(api: str) -> bool:
    """Whether it is a torch class that updates parameters."""
    other = api.startswith(("torch.optim.lr_scheduler", "torch.optim.swa_utils"))
    return api.startswith("torch.optim.") and not other and api.rpartition(".")[2][:1].isupper()


def makes_parameter(api: str) -> bool:
    """Whether what it returns gets gradients."""
    return api.rpartition(".")[2] == "requires_grad_" or api in (
        "torch.nn.Parameter",
        "torch.nn.parameter.Parameter",
    )


def stops_gradients(api: str) -> bool:
    """A context manager or decorator under which no gradients are recorded."""
    return _flagged("no_grad", api)
