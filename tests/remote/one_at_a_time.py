"""Runs moto's server so that it answers one request after another: by itself it compares and writes in two steps, between which another thread may write."""

import io
import threading

import moto.server

lock = threading.Lock()
answer = moto.server.DomainDispatcherApplication.__call__


def one_at_a_time(application, environ, start_response):
    # Read before, so that a machine which stops in the middle does not stop the others.
    length = int(environ.get("CONTENT_LENGTH") or 0)
    environ["wsgi.input"] = io.BytesIO(environ["wsgi.input"].read(length))
    with lock:
        return answer(application, environ, start_response)


moto.server.DomainDispatcherApplication.__call__ = one_at_a_time
moto.server.main()
