"""nbresume on, and never killed: not one draw of the user's comes out differently."""

from __future__ import annotations

import json

import pytest
from _support import script

from nbresume.testing import attempt, rehearse

PROGRAM = """
import hashlib, json, os, sys, random
import numpy as np
{imports}
from nbresume._magic._scratch import scratch_shell
from nbresume._capture import rng_state
from nbresume._identity import fingerprint
shell = scratch_shell()
random.seed(7); np.random.seed(7)
if "torch" in sys.modules: sys.modules["torch"].manual_seed(7)
sys.stdout.write = lambda text: len(text)
def run(cell):
    shell.run_cell(cell).raise_error()
run({before!r})
run({magic!r} + {cell!r})
after = [random.random(), random.gauss(0, 1), float(np.random.normal()), np.random.permutation(9).tolist()]
if "torch" in sys.modules: after.append(sys.modules["torch"].rand(2).tolist())
names = {{name: fingerprint(shell.user_ns.get(name)).digest for name in {names!r}}}
os.write(1, json.dumps([names, fingerprint(rng_state()).digest, after]).encode())
"""

BEFORE = """
import random, numpy as np
rng = np.random.default_rng(3)
old = np.random.RandomState(3)
mine = random.Random(3)
def epoch(n):
    total = 0.0
    for i in range(n):
        total += random.random() * np.random.normal() + rng.normal()
    return total
"""
CELLS = {
    "every stream": "log = []\nfor i in range(40):\n    log.append((random.random(), random.gauss(0, 1), np.random.normal(), rng.normal(), old.normal(), mine.gauss(0, 1)))\n    if i % 9 == 0: kids = rng.spawn(2)\n",
    "streams in the iterable": "log = []\nfor x in (random.random() + np.random.rand() for _ in range(30)):\n    log.append((x, random.random()))\n",
    "set-up, shuffle, sets": "order = list(range(30)); random.shuffle(order)\nlog = []\nfor x in set(order):\n    log.append((x, random.choice(order)))\nfor x in np.random.permutation(20):\n    log.append((int(x), np.random.rand()))\n",
    "functions": "log = []\nfor e in range(5):\n    loss = epoch(6)\n    log.append(loss)\n",
    "while": "log = []\nwhile random.random() > 0.03:\n    log.append(np.random.rand())\n",
}
TORCH = "import torch\nmodel = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout(0.3))\nopt = torch.optim.Adam(model.parameters())\nfrom torch.utils.data import DataLoader, TensorDataset\nloader = DataLoader(TensorDataset(torch.arange(40.0).reshape(10, 4)), batch_size=3, shuffle=True)\n"
LOOP = "log = []\nfor e in range(3):\n    for (x,) in loader:\n        opt.zero_grad()\n        loss = model(x + torch.randn_like(x)).square().mean()\n        loss.backward()\n        opt.step()\n        log.append((loss.item(), random.random(), np.random.rand()))\n"


def outcome(cell: str, before: str, magic: str, imports: str = "") -> list:
    """Run a cell in a process of its own; returns names, streams, and what is drawn afterwards."""
    names = ["log", "rng", "old", "mine", "order", "kids", "loss", "model", "opt"]
    return json.loads(
        script(PROGRAM.format(cell=cell, before=before, magic=magic, imports=imports, names=names), seed="0")
    )


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("cell", CELLS)
def test_a_run_under_nbresume_draws_what_a_plain_one_draws(cell):
    plain = outcome(CELLS[cell], BEFORE, "")
    for number, options in enumerate(("--every 1", "", "--every 7")):
        assert outcome(CELLS[cell], BEFORE, f"%%resumable run-{number} --vars log {options}\n") == plain


def test_training_under_nbresume_draws_what_a_plain_one_draws():
    plain = outcome(LOOP, BEFORE + TORCH, "", "import torch")
    assert outcome(LOOP, BEFORE + TORCH, "%%resumable t --vars log,model,opt --every 1\n", "import torch") == plain


def test_loading_the_extension_draws_nothing():
    out = script(
        """
        import random, sys
        import numpy as np
        before = random.getstate(), np.random.get_state()[1].tolist()
        from nbresume._magic._scratch import scratch_shell
        shell = scratch_shell()
        import nbresume
        nbresume.runs()
        print(before == (random.getstate(), np.random.get_state()[1].tolist()))
        """
    )
    assert out.split()[-1] == "True"


def test_a_module_of_random_numbers_that_nobody_imported_stays_unimported():
    """torch costs seconds; whether it is there is the user's business."""
    out = script(
        "import sys, nbresume._magic, nbresume._session, nbresume._capture\nprint([m for m in ('torch', 'pandas', 'dill', 'tqdm') if m in sys.modules])"
    )
    assert out.strip() == "[]"


STREAMS = """
import random, numpy as np, torch
kinds = [np.random.PCG64, np.random.PCG64DXSM, np.random.MT19937, np.random.Philox, np.random.SFC64]
many = [np.random.Generator(kind(3)) for kind in kinds]
seeds = np.random.SeedSequence(3)
mine, system = random.Random(3), random.SystemRandom()
gen = torch.Generator().manual_seed(3)
from scipy import stats
frozen = stats.norm(loc=2); frozen.random_state = np.random.default_rng(3)
from sklearn.linear_model import SGDRegressor
est = SGDRegressor(random_state=np.random.RandomState(3))
"""
DRAWS = """
np.random.seed(0); random.seed(0); torch.manual_seed(0)
log = []
for i in range(4):
    log.append([float(one.normal()) for one in many] + [int(one.integers(9)) for one in many])
    log.append((seeds.spawn(1)[0].generate_state(1).tolist(), mine.gauss(0, 1), random.gauss(0, 1), np.random.normal()))
    log.append((torch.rand(1, generator=gen).item(), torch.randn(1).item(), float(frozen.rvs()), type(system).__name__))
    est.partial_fit(np.ones((3, 2)) * i, np.random.rand(3))
    log.append(est.coef_.tolist())
    child = many[3].spawn(1)[0]
    log.append(float(child.normal()))
"""


def test_each_kind_of_stream_goes_on_where_it_stood():
    """The set-up seeds the global streams, as many notebooks do: on the way back that undoes nothing."""
    found = rehearse(DRAWS, STREAMS, names=["log", "est"], kill_at=[1, 3])
    assert found.ok, str(found)


@pytest.mark.parametrize("kind", ["PCG64", "Philox", "SFC64"])
def test_a_global_numpy_stream_of_another_kind_is_put_back(kind):
    before = f"import numpy as np\nnp.random.set_bit_generator(np.random.{kind}(1))\n"
    found = rehearse(
        "log = []\nfor i in range(3):\n    log.append(np.random.normal())\n", before, names=["log"], kill_at=[2]
    )
    assert found.ok, str(found)


MODES = """
import decimal, gc, os, sys, warnings, numpy as np, pandas as pd, sklearn, torch
def modes():
    return {
        "torch": (torch.get_default_dtype(), torch.is_grad_enabled(), torch.get_num_threads(), torch.backends.cudnn.benchmark,
                  torch.get_float32_matmul_precision(), str(torch.get_default_device())),
        "numpy": (np.geterr()["over"], np.get_printoptions()["precision"]),
        "pandas": pd.get_option("display.precision"), "sklearn": sklearn.get_config()["transform_output"],
        "python": (decimal.getcontext().prec, gc.isenabled(), gc.get_threshold(), sys.getrecursionlimit(), os.environ.get("MODE")),
        "warnings": warnings.filters[0][:1] + warnings.filters[0][2:3],
        "elsewhere": (pd.get_option("display.max_rows"), os.environ.get("ELSE")),
    }
"""
SETS = """
log = []
for i in range(2):
    if i == 0:
        torch.set_default_dtype(torch.float64); torch.set_grad_enabled(False); torch.set_num_threads(1)
        torch.backends.cudnn.benchmark = True; torch.set_float32_matmul_precision("medium"); torch.set_default_device("meta")
        np.seterr(over="raise"); np.set_printoptions(precision=3)
        pd.set_option("display.precision", 2); sklearn.set_config(transform_output="pandas")
        decimal.getcontext().prec = 9; gc.disable(); gc.set_threshold(500); sys.setrecursionlimit(4321); os.environ["MODE"] = "fast"
        warnings.simplefilter("error", UserWarning)
    log.append(modes())
"""


def test_what_the_cell_has_set_is_put_back_and_nothing_else(tmp_path):
    """A new kernel with settings of its own keeps those that the cell had not touched."""
    cell = "%%resumable t --vars log --every 1 --on-restart continue\n" + SETS
    cell += "print('|', [one.pop('elsewhere') for one in log], log[0] == log[1], '|')\n"
    assert attempt(MODES, cell, tmp_path, kill_at=2).status == "killed"
    other = "import os, pandas as pd\npd.set_option('display.max_rows', 7); os.environ['ELSE'] = 'here'\n"
    found = attempt(other + MODES, cell, tmp_path)
    assert found.status == "ended", found.error
    assert "| [(60, None), (7, 'here')] True |" in found.printed
