"""The one script of the card: its button runs the cell of the run again, as a person would.

A cell that a kernel callback runs is not interruptible and leaves nothing in the notebook file. So the button presses
the keys in the front end, which needs no kernel and no widget. Where scripts don't run, the text beside it says what
to do.
"""

from __future__ import annotations

import json
from string import Template

_SCRIPT = Template(
    "const own=this.closest('.jp-Cell'),book=this.closest('.jp-Notebook');"
    "if(!own||!book){this.textContent='run its cell again (Shift+Enter)';return}"
    # A fresh kernel shows the offer under whatever cell ran first: look for the cell that has the name.
    "const isRun=line=>{const words=line.textContent.trim().split(/\\s+/);"
    "return words[0]==='%%resumable'&&words.includes($name)};"
    "const isHome=cell=>[...cell.querySelectorAll('.cm-line')].some(isRun);"
    "const cell=isHome(own)?own:[...book.querySelectorAll('.jp-CodeCell')].find(isHome)||own;"
    "const prompt=cell.querySelector('.jp-InputPrompt');"
    "for(const kind of ['mousedown','mouseup','click'])"
    "prompt.dispatchEvent(new MouseEvent(kind,{bubbles:true,button:0}));"
    # The notebook moves its focus after the click; the keys must come after that.
    "setTimeout(()=>{cell.focus();document.activeElement.dispatchEvent(new KeyboardEvent('keydown',"
    "{key:'Enter',code:'Enter',keyCode:13,ctrlKey:true,bubbles:true,cancelable:true}))},100)"
)


def rerun(name: str) -> str:
    """Return the script that runs the cell of a run again."""
    return _SCRIPT.substitute(name=json.dumps(name))
