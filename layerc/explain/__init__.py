"""`layerc explain`: a page that shows what layerc made of a layer file, line by line.

colour.py   source text -> lines of coloured HTML
links.py    which line came from which
facts.py    what a compiled layer keeps, and what became of its loops
page.py     the page: style.css and script.js are written into it
"""

from layerc.explain.page import MARK, page

__all__ = ["MARK", "page"]
