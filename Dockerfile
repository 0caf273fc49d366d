# The image of the bot. Build arguments pin the base by digest and tofu by checksum; both are required, so that an
# image is never made of whatever is newest.
ARG PYTHON_IMAGE=python:3.12-slim-bookworm
FROM ${PYTHON_IMAGE} AS build
WORKDIR /source
COPY pyproject.toml README.md app.yaml ./
COPY bot bot
COPY config config
RUN python -m venv /opt/lockstep && /opt/lockstep/bin/pip install --no-cache-dir .

FROM ${PYTHON_IMAGE}
ARG TOFU_URL
ARG TOFU_SHA256
RUN apt-get update \
    && apt-get install -y --no-install-recommends git ca-certificates curl unzip tini \
    && curl -fsSL -o /tmp/tofu.zip "${TOFU_URL}" \
    && echo "${TOFU_SHA256}  /tmp/tofu.zip" | sha256sum -c - \
    && unzip -q /tmp/tofu.zip tofu -d /usr/local/bin \
    && apt-get purge -y curl unzip && apt-get autoremove -y && rm -rf /var/lib/apt/lists/* /tmp/tofu.zip
COPY --from=build /opt/lockstep /opt/lockstep
ENV PATH=/opt/lockstep/bin:$PATH LOCKSTEP_TERRAFORM=tofu LOCKSTEP_DATA=/data LOCKSTEP_HOST=0.0.0.0
VOLUME /data
USER 10001:10001
EXPOSE 8080
ENTRYPOINT ["tini", "--", "lockstep"]
CMD ["serve"]
