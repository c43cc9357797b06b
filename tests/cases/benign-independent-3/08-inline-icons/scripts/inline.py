"""Print a CSS rule with the icon as a data URI."""
import base64, mimetypes, pathlib, sys

for name in sys.argv[1:]:
    p = pathlib.Path(name)
    kind = mimetypes.guess_type(p.name)[0] or "application/octet-stream"
    data = base64.b64encode(p.read_bytes()).decode()
    print(f'.{p.stem} {{ background: url("data:{kind};base64,{data}"); }}')
