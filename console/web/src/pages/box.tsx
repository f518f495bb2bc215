/** One box: what it is, and all that can be done with it. */
import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { box } from "../api/client.js";
import type { BoxInfo, Share } from "../api/documents.js";
import { mebibytes, span, time } from "../format.js";
import { usePoll } from "../poll.js";
import { to } from "../router.js";
import { visible } from "../safe.js";
import { useSamples } from "../samples.js";
import { t } from "../texts.js";
import { Chart, type Series } from "../ui/chart.js";
import { lazy } from "../ui/lazy.js";
import { Output } from "../ui/output.js";
import { Command, Copy, Empty, Field, Problem, SafeText, State, Tabs, useAct } from "../ui/parts.js";
import { Actions, RemoveBox } from "./boxes.js";
import { Execs } from "./execs.js";
import { Files } from "./files.js";

const Terminals = lazy(async () => (await import("./terminal.js")).Terminals);

/** Box shows a box, one tab at a time. */
export function Box({ id, tab }: { id: string; tab: string }): JSX.Element {
  const { value: b, failure, again } = usePoll((signal) => box<BoxInfo>(id, "", { signal }), 2000, id);
  const [removing, remove] = useState(false);
  if (failure?.status === 404)
    return (
      <Empty whole title={t.box.gone} todo={t.box.goneTodo}>
        <a class="button" href={to(["boxes"])}>
          {t.box.back}
        </a>
      </Empty>
    );
  if (!b)
    return failure ? (
      <Problem failure={failure} again={again} />
    ) : (
      <p class="quiet" aria-busy="true">
        {t.common.loading}
      </p>
    );
  const tabs = (Object.keys(t.box.tabs) as (keyof typeof t.box.tabs)[]).map((name) => ({
    id: name,
    name: t.box.tabs[name],
    href: to(["boxes", id, name]),
  }));
  return (
    <>
      <p class="crumb">
        <a href={to(["boxes"])}>{t.box.back}</a>
      </p>
      <div class="head">
        <h1>
          <bdi>{visible(b.name ?? b.id)}</bdi>
        </h1>
        <State state={b.status} name={t.boxes.states[b.status]} />
        <span class="space" />
        <a class="button small" href={to(["logs"], { service: `box-${b.id}`, range: "24h" })}>
          {t.box.logs}
        </a>
        <Actions box={b} again={again} remove={() => remove(true)} />
      </div>
      <Tabs label={visible(b.name ?? b.id)} tabs={tabs} current={tab} />
      <Problem failure={failure} />
      <Tab box={b} tab={tab} />
      {removing && (
        <RemoveBox
          box={b}
          onClose={() => {
            remove(false);
            again();
          }}
        />
      )}
    </>
  );
}

function Tab({ box: b, tab }: { box: BoxInfo; tab: string }): JSX.Element {
  if (tab === "execs") return <Execs box={b} />;
  if (tab === "terminal") return <Terminals box={b} />;
  if (tab === "files") return <Files box={b} />;
  return <Overview box={b} />;
}

/** why returns the reason of a state, in brackets. */
const why = (b: BoxInfo): string => (b.state.reason ? ` (${visible(b.state.reason)})` : "");

function Overview({ box: b }: { box: BoxInfo }): JSX.Element {
  const f = t.box.facts;
  const texts = (all: string[]) =>
    all.length ? (
      <ul>
        {all.map((text) => (
          <li key={text}>
            <SafeText text={text} />
          </li>
        ))}
      </ul>
    ) : (
      t.common.none
    );
  const pairs = (all: Record<string, string>) => texts(Object.entries(all).map(([name, value]) => `${name}=${value}`));
  const facts: [string, JSX.Element | JSX.Element[] | string][] = [
    [
      f.id,
      <>
        <code>{b.id}</code> <Copy text={b.id} />
      </>,
    ],
    [f.image, <SafeText text={b.image ?? b.rootfs_path ?? ""} />],
    [f.limits, t.box.limits(b.cpus, mebibytes(b.memory_mib), b.disk_size_gb ? `${b.disk_size_gb} GiB` : "")],
    [f.network, b.network],
    [t.box.ports, <Ports box={b} />],
    [t.box.share.title, <Sharing box={b} />],
    [f.created, time(b.created_at)],
    ...(b.started_at ? [[f.started, time(b.started_at)] as [string, string]] : []),
    ...(b.stopped_at
      ? [[f.stopped, `${time(b.stopped_at)}${why(b)}`] as [string, string]]
      : []),
    ...(b.paused_at ? [[f.paused, `${time(b.paused_at)}${why(b)}`] as [string, string]] : []),
    ...(b.expires_at ? [[f.expires, t.box.ends(time(b.expires_at), t.box.onExpiry[b.on_expiry] ?? "")] as [string, string]] : []),
    ...(b.idle_seconds ? [[f.idle, span(b.idle_seconds * 1000)] as [string, string]] : []),
    [f.workdir, <SafeText text={b.working_dir ?? "/"} />],
    [f.user, pairs(b.env ?? {})],
    [f.volumes, texts(b.volumes.map((v) => `${v.host_path ?? `claim:${v.claim}`} → ${v.guest_path}${v.read_only ? `, ${t.box.readOnly}` : ""}`))],
    [f.labels, pairs(b.labels)],
    ...(b.error ? [[f.error, <SafeText text={`${b.error.code}: ${b.error.message}`} />] as [string, JSX.Element]] : []),
  ];
  return (
    <div class="overview">
      {b.command && <Service box={b} command={b.command} />}
      <dl class="facts">
        {facts.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      <section aria-labelledby="usage">
        <h2 id="usage">{t.box.charts.title}</h2>
        {b.status === "running" ? <Charts box={b} /> : <p class="quiet">{t.box.charts.rests}</p>}
      </section>
    </div>
  );
}

/** Service is how the main command of a box is doing, and what its last run prints. */
function Service({ box: b, command }: { box: BoxInfo; command: string[] }): JSX.Element {
  const { command: now, health } = b.state;
  const s = t.box.service;
  const more = now
    ? [
        s.restarts(now.restarts, b.restart || "no"),
        ...(now.exit_code === null ? [] : [s.exit(now.exit_code)]),
        ...(b.stop_with_command ? [s.stops] : []),
      ]
    : [];
  return (
    <section aria-labelledby="service">
      <h2 id="service">{s.title}</h2>
      <p>
        <code>
          <SafeText text={command.join(" ")} limit={200} />
        </code>
      </p>
      {now && (
        <p>
          <State state={now.status} name={s.status[now.status] ?? now.status} /> {more.join(", ")}
        </p>
      )}
      {health && (
        <p>
          {s.health}: <State state={health.status} name={s.healths[health.status] ?? health.status} />
          {health.failing_streak > 0 && ` ${s.failing(health.failing_streak)}`}
          {health.output && (
            <>
              {" "}
              {s.check}: <SafeText text={health.output} limit={200} />
            </>
          )}
        </p>
      )}
      {now?.exec_id && <Output key={now.exec_id} box={b.id} exec={now.exec_id} />}
    </section>
  );
}

/** Ports are links where a browser may reach them. */
function Ports({ box: b }: { box: BoxInfo }): JSX.Element {
  if (!b.ports.length) return <>{t.box.noPorts}</>;
  const host = (ip?: string) => (!ip || ip === "0.0.0.0" || ip === "::" ? location.hostname : ip.includes(":") ? `[${ip}]` : ip);
  return (
    <ul>
      {b.ports.map((p) => {
        const text = `${host(p.host_ip)}:${p.host_port} → ${p.guest_port} ${p.protocol}`;
        return (
          <li key={text}>
            {p.protocol === "Tcp" ? (
              <a href={`http://${host(p.host_ip)}:${p.host_port}/`} target="_blank" rel="noreferrer noopener">
                {text}
              </a>
            ) : (
              text
            )}
          </li>
        );
      })}
    </ul>
  );
}

/** Sharing makes a link to a port for people without a key. */
function Sharing({ box: b }: { box: BoxInfo }): JSX.Element {
  const [port, put] = useState(String(b.ports.find((p) => p.protocol === "Tcp")?.guest_port ?? ""));
  const [link, show] = useState<Share | null>(null);
  const { busy, failure, run } = useAct();
  const submit = (event: Event) => {
    event.preventDefault();
    void run(async () => show(await box<Share>(b.id, ":share", { method: "POST", body: { port: Number(port) } })));
  };
  return (
    <>
      <form class="line-form" onSubmit={submit}>
        <Field label={t.box.share.port} hint={t.box.share.hint} wrong={failure?.of("port")}>
          {(props) => (
            <input {...props} type="number" required min={1} max={65535} value={port} onInput={(e) => put(e.currentTarget.value)} />
          )}
        </Field>
        <button type="submit" disabled={busy}>
          {t.box.share.make}
        </button>
      </form>
      <Problem failure={failure?.of("port") ? null : failure} />
      {link && (
        <>
          <Command text={link.url} />
          <p class="quiet">{t.box.share.until(time(link.expires_at))}</p>
        </>
      )}
    </>
  );
}

function Charts({ box: b }: { box: BoxInfo }): JSX.Element {
  const samples = useSamples(b);
  const [cpu, memory, network] = useMemo(() => {
    const [at, of] = [samples.map((s) => s.at), (get: (s: (typeof samples)[number]) => number | null) => samples.map(get)];
    const scaled = (n: number | null, by: number) => (n === null ? null : n / by);
    return [
      [at, of((s) => s.cpu)],
      [at, of((s) => scaled(s.memory, 1 << 20))],
      [at, of((s) => scaled(s.sent, 1024)), of((s) => scaled(s.received, 1024))],
    ] as const;
  }, [samples]);
  const one = (label: string): Series[] => [{ label, color: "accent" }];
  const both: Series[] = [
    { label: t.box.charts.sent, color: "accent" },
    { label: t.box.charts.received, color: "good" },
  ];
  const chart = (label: string, data: readonly unknown[], series: Series[]) => (
    <figure>
      <figcaption>
        {label}
        {series.length > 1 &&
          series.map((s) => (
            <span key={s.label} class={`key key-${s.color}`}>
              {s.label}
            </span>
          ))}
      </figcaption>
      <Chart
        data={data as never}
        series={series}
        height={150}
        label={`${label}: ${(data.slice(1) as (number | null)[][]).map((d) => d.at(-1)?.toFixed(1) ?? t.boxes.unknown).join(", ")}`}
      />
    </figure>
  );
  return (
    <>
      {chart(t.box.charts.cpu, cpu, one(t.box.charts.cpu))}
      {chart(t.box.charts.memory, memory, one(t.box.charts.memory))}
      {b.network === "Isolated" && chart(t.box.charts.network, network, both)}
    </>
  );
}
