# The worker as a container: an ordinary user, no capability, a root file system that may be
# read-only. How to run it, and what the host has to allow: docs/containers.md.
#
# BASE has Node 24 with npm, and is a Debian 12 or like it: apt-get, glibc, util-linux.
ARG BASE=node:24-bookworm-slim

FROM ${BASE} AS build
WORKDIR /build
COPY . .
# A checkout is built; the published package, which has no package-lock.json, is built already.
# Optional packages are for the build and for checkouts on hosts with an older Node.
RUN if [ -e package-lock.json ]; then npm ci && npm run build && npm prune --omit=dev --omit=optional; \
  else npm install --omit=dev --omit=optional --no-package-lock; fi \
  && rm -rf node_modules/.cache && find node_modules -type d -empty -delete

FROM ${BASE}
RUN apt-get update \
  && apt-get install --yes --no-install-recommends bubblewrap python3 python3-pip \
  && rm -rf /var/lib/apt/lists/*
WORKDIR /opt/str
COPY --from=build /build/package.json /build/LICENSE ./
COPY --from=build /build/bin bin
COPY --from=build /build/dist dist
COPY --from=build /build/node_modules node_modules
COPY --from=build /build/tool-runner tool-runner
COPY --from=build /build/attacks attacks
COPY --from=build /build/examples examples
COPY --from=build /build/deploy deploy
RUN ln -s /opt/str/bin/str-worker.mjs /usr/local/bin/str-worker \
  && ln -s /opt/str/bin/harness.mjs /usr/local/bin/harness \
  && install -d -o 1000 -g 1000 /sandbox/work /sandbox/environments /sam/artifacts \
  && install -d /tools/python /tools/node
ENV HOME=/tmp NODE_ENV=production ARTIFACT_SERVICE_TYPE=filesystem
# Half the memory: docs/operate.md, "Load".
ENV NODE_OPTIONS=--max-semi-space-size=2 MALLOC_ARENA_MAX=2
# A number, so that Kubernetes can see that it is not root (runAsNonRoot).
USER 1000:1000
WORKDIR /
# Volumes where the worker writes; they also serve where the root file system is read-only.
VOLUME ["/sandbox/work", "/sam/artifacts", "/tmp"]
EXPOSE 8081
ENTRYPOINT ["str-worker"]
