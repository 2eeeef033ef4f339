# A pipeline in a container, with Skyband, Spark and Java from the package registries alone:
#   docker build -t skyband .
#   docker run -v "$PWD:/pipeline" --stop-timeout 120 skyband            # runs pipeline.toml
# docs/deploying.md says more.
ARG PYTHON=3.12

FROM python:${PYTHON}-slim AS build
WORKDIR /build
COPY pyproject.toml README.md LICENSE constraints.txt ./
COPY src src
RUN python -m venv /opt/skyband \
 && /opt/skyband/bin/pip install --no-cache-dir --constraint constraints.txt '.[spark,serve,redis,postgresql,delta,iceberg]'

FROM python:${PYTHON}-slim
COPY --from=build /opt/skyband /opt/skyband
RUN useradd --create-home --uid 10001 skyband && install --directory --owner skyband /pipeline
# Compiled loops, and the connector for Kafka, stay on the volume, so that a new container need not make or fetch them.
ENV PATH=/opt/skyband/bin:$PATH NUMBA_CACHE_DIR=/pipeline/.skyband/compiled SKYBAND_CACHE=/pipeline/.skyband/cache
USER skyband
WORKDIR /pipeline
VOLUME /pipeline
# SIGTERM stops the pipeline after the micro-batches that run.
STOPSIGNAL SIGTERM
HEALTHCHECK --start-period=5m --interval=30s --timeout=5s \
  CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8765/health', timeout=4)"]
ENTRYPOINT ["skyband"]
CMD ["run", "pipeline.toml", "--log", "json", "--serve"]
