"""`sizing-xlsx serve`: the Excel functions as an add-in, and the service that answers it. Needs the extra "server".

settings     what the service runs with: a TOML file and the command line
keys         API keys, hashed at rest, each of a tenant and with limits of its own
limits       how fast a key may ask
turns        whose batch is computed next
tenants      the presets of each tenant: uploaded, checked, kept by version
wire         JSON in, calls out; answers in, JSON out
metadata     functions.json and the manifest, from the registry
metrics      counts and durations, of all workers together
protocol     connections: bounded in number and in time
guard        what stands before every request: who asks, how much, how long; headers; the log
app          the routes
certificate  a certificate of one's own for --dev
command      the command line
assets/      the add-in's pages and scripts
"""
