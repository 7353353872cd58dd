"""Sphinx configuration; the notebooks are executed by every build."""

import shutil
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import nbresume  # noqa: E402

# The notebooks live beside the package, because `nbresume demo` ships them; Sphinx reads only below docs/.
for notebook in (HERE.parent / "notebooks").glob("*.ipynb"):
    shutil.copyfile(notebook, HERE / "tutorial" / notebook.name)

project = "nbresume"
author = "nbresume developers"
copyright = "nbresume developers"
version = release = nbresume.__version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"nbresume {release}"
html_static_path = ["_static"]

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

nb_execution_mode = "force"
nb_execution_in_temp = True  # the store of an executed notebook stays out of the tree
nb_execution_timeout = 120
nb_execution_raise_on_error = True

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True  # attributes are described, not indexed: `path` of one error would clash with that of another

# Without the network there are no inventories of other projects: only our own names must resolve.
nitpick_ignore_regex = [(r"py:.*", r"(?!nbresume\.).*"), (r"py:.*", r"nbresume\._.*")]
