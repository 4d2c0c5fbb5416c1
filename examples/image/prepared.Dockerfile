# An environment for each tool, with what the manifest names: for podman. docs/containers.md, "Build
# on this image".
ARG BASE=str-worker
FROM ${BASE}
USER 0
RUN install -d -o 1000 -g 1000 /opt/environments
ENV PACKAGE_DIR=/opt/environments
USER 1000:1000
COPY tools /tools
RUN str-worker --prepare
