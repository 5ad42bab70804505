# docker build --tag sidelight:0.1.0 .
# test/e2e/image.test.ts plays these steps without Docker.

FROM node:24-bookworm-slim AS build
WORKDIR /build
# Before the sources, so that a change in these does not fetch the packages anew.
COPY package.json package-lock.json .npmrc ./
# Without install scripts: the one that matters fetches a Node, and here is one.
RUN npm ci --ignore-scripts
COPY . .
# The package as `npm pack` makes it (which builds first), unpacked: what is not in it is not in the image.
RUN npm pack && mkdir /app && tar -xzf sidelight-*.tgz -C /app --strip-components=1
# The lock file is not packed, but it fixes the version of every dependency.
RUN cp package-lock.json /app/ && cd /app && npm ci --omit=dev --ignore-scripts

FROM node:24-bookworm-slim
COPY --from=build /app /app
# A number, so that Kubernetes can see that it is not root. Nothing under /app is its own, so it cannot change the program.
USER 10001:10001
EXPOSE 50051 9464
# Kubernetes does not ask this, Docker and Compose do.
HEALTHCHECK --interval=10s --timeout=5s --start-period=10s CMD ["node", "-e", "fetch('http://127.0.0.1:9464/readyz').then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["/app/bin/sidelight"]
# Loopback, the default, would be the container's own.
CMD ["serve", "--grpc", "0.0.0.0:50051", "--http", "0.0.0.0:9464"]
