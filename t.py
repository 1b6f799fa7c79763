import dpsql, datetime as dt, os, tempfile, duckdb
from dpsql.policy.policy import Policy
from dpsql.policy.load import load_policy
d=tempfile.mkdtemp()
con=duckdb.connect(f"{d}/x.duckdb"); con.execute("create table trips(day date, station bigint, minutes bigint)")
con.execute("insert into trips select date '2026-01-01' + (i%14)::int, i%3+1, i%50 from range(1400) t(i)"); con.execute("insert into trips values (NULL,1,3)"); con.close()
open(f"{d}/p.yaml","w").write("""
version: 1
name: t
database: x.duckdb
tables:
  trips:
    unit: {rows: 1}
    grows: {by: day, every: day, from: 2026-01-01, keep: 400}
    columns: {day: {type: date, nullable: false}, station: {type: bigint, domain: [1, 2, 3], nullable: false}, minutes: {type: bigint, bounds: [0, 60], nullable: false}}
budgets: {total: {epsilon: 1000}}
""")
os.environ["XDG_STATE_HOME"]=d
con=dpsql.connect(f"{d}/p.yaml")
try:
    con.sql("select count(*) from trips").run(epsilon=1)
except Exception as e: print(e)
from dpsql.core.ledger import closings
s=con.service if hasattr(con,'service') else con._session.service
t=s.policy.table("trips")
closings.close(s.ledger, s.policy, t, dt.date(2026,1,10))
for q in ["select count(*) from trips","select count(*) from trips where day >= date '2026-01-08'","select day, count(*) from trips where day >= date '2026-01-08' group by day","select count(*) from trips where day > date '2026-01-10' - 2 or day = date '2026-01-02'", "select count(*) from trips where day > date '2026-01-10'","select count(*), sum(minutes) from trips where date_trunc('month', day) = date '2026-01-01' and day not in (date '2026-01-03')","select a.station, count(*) from trips a where a.day between date '2026-01-03' and '2026-01-04' group by a.station"]:
    try:
        x=con.sql(q)
        print(x.run(epsilon=50).rows if hasattr(x.run(epsilon=50),'rows') else list(x.run(epsilon=50)))
        p=con.plan(q,epsilon=1)
        print(p.releases[0].statements[0].sql if hasattr(p.releases[0].statements[0],'sql') else p.releases[0].statements[0])
    except dpsql.Error as e: print(e)

print("-----check")
import dpsql as D
for q in ["select count(*) from trips","select day, count(*) from trips group by day","select count(*) from trips where day > last_closed('trips') - 3","select date_trunc('month', day) m, count(*) from trips group by m", "select count(*) from trips where day > last_closed('trps')","select count(*) from trips where day > last_closed(3)"]:
    for f in D.check(q, f"{d}/p.yaml"): print(f)
    try:
        r=con.sql(q).run(epsilon=50); print(list(r), r.notes)
    except D.Error as e: print(e)
print(con.sql("select count(*) from trips where day > last_closed('trips') - 3").explain(epsilon=1))
