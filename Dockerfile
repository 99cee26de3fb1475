# memograd serve: a memory over HTTP, without torch. The memory is the volume /data.
#
#   docker build -t memograd .
#   docker run -p 8322:8322 -v memograd:/data -e MEMOGRAD_SERVE_TOKEN=... \
#       memograd --allow-host localhost

FROM python:3.11-slim-bookworm AS build
WORKDIR /build
COPY pyproject.toml README.md LICENSE requirements.lock ./
COPY src src
# The lock file holds the versions of every extra; only those that these extras need are installed.
RUN python -m venv /venv \
    && /venv/bin/pip install --no-cache-dir --constraint requirements.lock ".[serve,postgres]"

FROM python:3.11-slim-bookworm
RUN groupadd --gid 10001 memograd \
    && useradd --uid 10001 --gid memograd --home-dir /data --no-create-home --shell /usr/sbin/nologin memograd \
    && install --directory --owner memograd --group memograd --mode 0750 /data
COPY --from=build /venv /venv
ENV PATH=/venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    OMP_NUM_THREADS=1 \
    MEMOGRAD_PATH=/data/memories \
    MEMOGRAD_CACHE=/data/cache
USER memograd
WORKDIR /data
VOLUME /data
EXPOSE 8322
# Asked by the name that it always answers to, past any proxy of the environment; a database that is
# away makes it unhealthy.
HEALTHCHECK --interval=15s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-c", "from urllib.request import ProxyHandler, build_opener as b; b(ProxyHandler({})).open('http://127.0.0.1:8322/healthz', timeout=4)"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["memograd", "serve", "--host", "0.0.0.0", "--port", "8322"]
CMD ["--allow-host", "localhost"]
