import base64, codecs, sys

t = sys.argv[1]
for name, f in {
    "base64": lambda s: base64.b64decode(s, validate=True).decode(),
    "hex": lambda s: bytes.fromhex(s).decode(),
    "rot13": lambda s: codecs.decode(s, "rot13"),
}.items():
    try:
        print(f"{name:8}", f(t))
    except Exception:
        pass
