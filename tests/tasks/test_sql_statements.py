"""Statements as analysts write them: each is answered, and as SQLite alone answers it."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from memograd.tasks.sql.sample.build import sample_database
from memograd.tasks.sql.sandbox import Sandbox

SCHEMA = """
CREATE TABLE 处方(编号 integer primary key, 药品 integer references drugs_info(id), 疾病 integer,
    日期 text, 数量 integer, 单价 real, 明细 text);
CREATE TABLE "order"("key" integer primary key, "group" text, "desc" text, "index" int);
CREATE VIEW v_rx AS SELECT r.编号 id, d.med_name, s.disease_name, r.日期 day, r.数量 n, r.单价 price
    FROM 处方 r JOIN drugs_info d ON d.id=r.药品 JOIN disease s ON s.id=r.疾病;
CREATE VIEW v_month AS SELECT strftime('%Y-%m', day) m, med_name, sum(n) n, sum(n*price) total
    FROM v_rx WHERE med_name LIKE '%' AND replace(day, '-', '') > '2023' GROUP BY 1, 2;
CREATE VIEW v2 AS SELECT a.id, a.med_name FROM v_rx a JOIN v_rx b ON a.id=b.id JOIN v_rx c
    ON c.id=a.id;
CREATE VIEW v3 AS SELECT a.id, a.med_name FROM v2 a JOIN v2 b ON a.id=b.id JOIN v2 c ON c.id=a.id;
CREATE VIEW v4 AS SELECT a.id, a.med_name FROM v3 a JOIN v2 b ON a.id=b.id;
CREATE VIEW v_how AS SELECT r.编号 id, j.value how FROM 处方 r, json_each(r.明细, '$.用法') j;
"""
"""Chinese names, names that are words of SQL, and views: of dates, of JSON, of 36 tables."""

STATEMENTS = r"""
SELECT d.med_name, count(*) n FROM 处方 r JOIN drugs_info d ON d.id=r.药品 GROUP BY d.id ORDER
  BY n DESC, d.med_name LIMIT 5

SELECT m, total, sum(total) OVER (ORDER BY m ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) FROM
  (SELECT m, sum(total) total FROM v_month GROUP BY m)

SELECT m, total, lag(total) OVER (ORDER BY m) prev, total - lag(total, 1, 0) OVER (ORDER BY m)
  diff FROM (SELECT m, sum(total) total FROM v_month GROUP BY m)

SELECT m, lead(total) OVER w, first_value(total) OVER w, last_value(total) OVER w,
  nth_value(total,2) OVER w FROM (SELECT m, sum(total) total FROM v_month GROUP BY m) WINDOW w
  AS (ORDER BY m)

SELECT med_name, n, ntile(4) OVER (ORDER BY n, med_name), percent_rank() OVER (ORDER BY n),
  cume_dist() OVER (ORDER BY n) FROM (SELECT med_name, count(*) n FROM v_rx GROUP BY 1)

SELECT * FROM (SELECT med_name, day, row_number() OVER (PARTITION BY med_name ORDER BY day DESC,
  id) rn FROM v_rx) WHERE rn=1 ORDER BY 1

SELECT date('2024-03-31','-1 month'), date('2024-02-28','+1 day'), strftime('%w','2024-05-01'),
  julianday('2024-05-01')-julianday('2024-01-01')

SELECT strftime('%Y', 日期) 年, CASE WHEN CAST(strftime('%m', 日期) AS INTEGER) <= 6 THEN
  '上半年' ELSE '下半年' END 半年, sum(数量*单价) 金额 FROM 处方 GROUP BY 年, 半年

SELECT round(avg(单价), 2), min(单价), max(单价), total(数量) FROM 处方

SELECT printf('%.2f', avg(单价)) FROM 处方

SELECT printf('%s：%d次', med_name, count(*)) FROM v_rx GROUP BY med_name ORDER BY count(*)
  DESC, 1 LIMIT 3

SELECT format('%05d', 编号) FROM 处方 LIMIT 2

SELECT json_extract(明细, '$.医生') 医生, count(*) FROM 处方 GROUP BY 1 ORDER BY 1

SELECT 明细 ->> '$.用法[0]' FROM 处方 LIMIT 3

SELECT 明细 -> '用法' FROM 处方 LIMIT 3

SELECT j.value, count(*) FROM 处方, json_each(处方.明细, '$.用法') j GROUP BY 1 ORDER BY 2 DESC,
  1

SELECT json_array_length(明细, '$.用法'), json_valid(明细), json_type(明细) FROM 处方 LIMIT 1

SELECT json_group_array(med_name) FROM (SELECT DISTINCT med_name FROM v_rx ORDER BY 1 LIMIT 4)

SELECT json_object('药', med_name, 'n', count(*)) FROM v_rx GROUP BY med_name ORDER BY 1 LIMIT 2

SELECT group_concat(med_name, '、') FROM (SELECT DISTINCT med_name FROM v_rx ORDER BY med_name
  LIMIT 6)

SELECT group_concat(DISTINCT disease_name) FROM v_rx WHERE med_name LIKE '%平%'

SELECT med_name FROM drugs_info WHERE contraindications LIKE '%孕妇%' AND indication LIKE
  '%高血压%'

SELECT med_name FROM drugs_info WHERE med_name IN ('阿司匹林','华法林') OR company_name IS NULL
  ORDER BY id LIMIT 5

SELECT "med_name" AS "药品 名称" FROM "drugs_info" WHERE "id" = 1001

SELECT `med_name` FROM `drugs_info` WHERE `id` = 1001

SELECT [med_name] FROM [drugs_info] WHERE [id] = 1001

SELECT 药品, sum(数量) AS 总量 FROM 处方 GROUP BY 药品 HAVING 总量 > 10 ORDER BY 总量 DESC, 药品

WITH 月 AS (SELECT strftime('%m', 日期) 月份, sum(数量) 量 FROM 处方 GROUP BY 1), 均 AS (SELECT
  avg(量) 平均 FROM 月) SELECT 月份, 量 FROM 月, 均 WHERE 量 > 平均

WITH a AS MATERIALIZED (SELECT * FROM v_rx), b AS NOT MATERIALIZED (SELECT * FROM a WHERE n>2)
  SELECT count(*) FROM a LEFT JOIN b USING (id)

SELECT count(*) FILTER (WHERE 数量 > 2) 大, count(*) FILTER (WHERE 数量 <= 2) 小 FROM 处方

SELECT d.med_name FROM drugs_info d WHERE NOT EXISTS (SELECT 1 FROM 处方 r WHERE r.药品 = d.id)
  ORDER BY 1

SELECT d.med_name, (SELECT max(日期) FROM 处方 r WHERE r.药品=d.id) 最近 FROM drugs_info d ORDER
  BY 最近 DESC, d.id LIMIT 3

SELECT a.med_name, b.med_name FROM drugs_info a JOIN drugs_info b ON a.id < b.id AND a.form =
  b.form AND a.mechanism_action = b.mechanism_action LIMIT 5

SELECT form, count(*) n, round(100.0*count(*)/(SELECT count(*) FROM drugs_info),1) || '%' FROM
  drugs_info GROUP BY form ORDER BY n DESC

SELECT length(indication) L, substr(indication,1,10), instr(indication,'用于'),
  replace(indication,'用于','治疗'), trim(indication,'。') FROM drugs_info ORDER BY L DESC LIMIT
  3

SELECT count(v4.id) FROM v4

SELECT count(*) FROM v3 a JOIN v_rx b ON a.id=b.id

SELECT m, count(*) FROM v_month GROUP BY m ORDER BY m LIMIT 50

SELECT a.m, a.total, b.total FROM (SELECT m, sum(total) total FROM v_month GROUP BY m) a LEFT
  JOIN (SELECT m, sum(total) total FROM v_month GROUP BY m) b ON b.m = strftime('%Y-%m',
  date(a.m || '-01', '-1 month'))

SELECT med_name FROM v_rx EXCEPT SELECT med_name FROM v_rx WHERE n > 3

SELECT med_name FROM v_rx WHERE n=1 INTERSECT SELECT med_name FROM v_rx WHERE n=5 ORDER BY 1

SELECT 'drug' kind, med_name name FROM drugs_info WHERE id<1004 UNION ALL SELECT 'disease',
  disease_name FROM disease WHERE id<4 ORDER BY kind DESC, name

SELECT coalesce(company_name,'不详'), ifnull(dosage,''), nullif(form,''),
  iif(form='口服制剂',1,0) FROM drugs_info LIMIT 2

SELECT DISTINCT form FROM drugs_info WHERE form IS NOT NULL ORDER BY form COLLATE NOCASE DESC
  NULLS LAST

SELECT CASE form WHEN '口服制剂' THEN 1 ELSE 2 END k, count(*) FROM drugs_info GROUP BY k

SELECT "group", max("index") FROM "order" GROUP BY "group" ORDER BY 1

SELECT o."desc", o."key" FROM "order" o WHERE o."index" BETWEEN 1 AND 9

SELECT key, [desc] FROM "order" ORDER BY key LIMIT 2

SELECT * FROM 处方 WHERE 日期 BETWEEN '2024-03-01' AND '2024-03-31' AND 数量 >= 3 ORDER BY 日期,
  编号 LIMIT 10 OFFSET 2

SELECT * FROM 处方 WHERE (药品, 疾病) IN (SELECT 药品, 疾病 FROM 处方 GROUP BY 1,2 HAVING
  count(*)>1) LIMIT 3

SELECT * FROM 处方 ORDER BY 单价 DESC, 编号 LIMIT 5, 3

SELECT r.*, d.med_name FROM 处方 r CROSS JOIN drugs_info d WHERE d.id=r.药品 AND r.编号 < 3

SELECT r.编号 FROM drugs_info d RIGHT JOIN 处方 r ON d.id=r.药品 WHERE r.编号<3

SELECT count(*) FROM drugs_info d FULL OUTER JOIN 处方 r ON d.id=r.药品

SELECT count(*) FROM 处方 NATURAL JOIN (SELECT 编号 FROM 处方 WHERE 数量=1)

SELECT 数量, count(*), sum(count(*)) OVER (ORDER BY 数量) 累计, round(1.0*sum(count(*)) OVER
  (ORDER BY 数量)/sum(count(*)) OVER (),3) FROM 处方 GROUP BY 数量

SELECT avg(单价) FROM (SELECT 单价, row_number() OVER (ORDER BY 单价) i, count(*) OVER () c FROM
  处方) WHERE i IN ((c+1)/2, (c+2)/2)

SELECT 日期, 数量, avg(数量) OVER (ORDER BY 日期, 编号 RANGE BETWEEN UNBOUNDED PRECEDING AND
  CURRENT ROW) FROM 处方 ORDER BY 编号 LIMIT 3

SELECT date('2024-01-01', '+' || (n) || ' days') FROM (SELECT 0 n UNION SELECT 1 UNION SELECT 2)

SELECT 编号 FROM 处方 WHERE date(日期) >= date('2024-06-15', 'start of month', '+1 month', '-1 day')
  ORDER BY 1 LIMIT 2

SELECT unixepoch('2024-01-01'), datetime(1704067200,'unixepoch'), time('12:30:45'),
  date('2024-01-01','weekday 1')

SELECT max(1,2,3), min('b','a'), abs(-3), sign(-2), ceil(1.2), floor(-1.2), round(2.567,1), 7/2,
  7%3, 7.0/2

SELECT typeof(1), typeof('a'), typeof(NULL), CAST('12' AS INTEGER), CAST(3.7 AS INT), 1 IS NULL,
  1 ISNULL, 2 NOTNULL

SELECT med_name FROM drugs_info WHERE med_name GLOB '*素*' ORDER BY 1

SELECT med_name FROM drugs_info WHERE med_name NOT LIKE '%片' AND form == '口服制剂' AND id <>
  1001 LIMIT 2

SELECT '100%' LIKE '100\%' ESCAPE '\'

WITH t(a,b) AS (VALUES ('甲',1),('乙',2)) SELECT t.a, o."key" FROM t JOIN "order" o ON
  o."group"=t.a AND o."key"=t.b

SELECT column1, column2 FROM (VALUES (1,'a'),(2,'b'))

SELECT count(DISTINCT med_name), count(DISTINCT substr(day,1,7)) FROM v_rx

SELECT disease_name, count(*) c, rank() OVER (ORDER BY count(*) DESC), dense_rank() OVER (ORDER
  BY count(*) DESC) FROM v_rx GROUP BY 1 ORDER BY c DESC, 1 LIMIT 5

SELECT sum(CASE WHEN indication LIKE '%高血压%' THEN 1 ELSE 0 END), sum(indication LIKE
  '%糖尿病%') FROM drugs_info

SELECT med_name, length(replace(indication, '、', '、、')) - length(indication) + 1 AS 适应症数
  FROM drugs_info ORDER BY 2 DESC, 1 LIMIT 3

SELECT id, med_name FROM drugs_info WHERE id IN (SELECT 药品 FROM 处方 WHERE 日期 >
  '2024-10-01') AND id NOT IN (SELECT 药品 FROM 处方 WHERE 日期 < '2024-03-01') ORDER BY id

SELECT a.日期, (SELECT count(*) FROM 处方 b WHERE b.日期 <= a.日期) FROM (SELECT DISTINCT 日期
  FROM 处方) a ORDER BY 1 LIMIT 3

SELECT '说：“好”（很好）；OK' AS 备注, '(((' AS a, ')))' AS b

SELECT med_name FROM drugs_info WHERE lower(component) LIKE lower('%AMLODIPINE%')

SELECT group_concat(x, ' > ') FROM (SELECT med_name x FROM drugs_info ORDER BY length(med_name)
  DESC, med_name LIMIT 3)

SELECT strftime('%Y-W%W', 日期) 周, count(*) FROM 处方 GROUP BY 1 ORDER BY 1 LIMIT 3

SELECT "没有这一列" FROM drugs_info LIMIT 1

SELECT 1 AS temp, 2 AS replace, 3 AS row, 4 AS rows, 5 AS first

SELECT all_.n FROM (SELECT count(*) n FROM disease) all_

SELECT ALL form FROM drugs_info LIMIT 1

SELECT t.id FROM drugs_info AS t NOT INDEXED LIMIT 1

SELECT med_name FROM main.drugs_info WHERE main.drugs_info.id = 1001

SELECT rowid, med_name FROM drugs_info WHERE rowid=1001

SELECT a.编号 FROM 处方 a WHERE a.数量 IS NOT DISTINCT FROM 5 LIMIT 1

SELECT 日期 FROM 处方 GROUP BY 日期 HAVING count(*) = (SELECT max(c) FROM (SELECT count(*) c
  FROM 处方 GROUP BY 日期)) ORDER BY 1

SELECT how, count(*) FROM v_how GROUP BY how ORDER BY 1

SELECT hex('药'), unicode('药'), char(33647), quote('a''b'), quote(NULL), hex(12), hex(1.5),
  hex(x'0a')

SELECT count(*) FROM v4 a, v3 b WHERE a.id=b.id

SELECT sum(x.n) FROM (SELECT n FROM v_rx ORDER BY n LIMIT 9) x, (SELECT id FROM v4 LIMIT 1) y,
  v4 z
""".strip()

MATHEMATICS = "SELECT sqrt(2), power(2, 3), pow(2, .5), ln(10), log10(100), exp(0), mod(7, 3), pi()"


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sql") / "clinic.sqlite"
    shutil.copy(sample_database(), path)
    with closing(sqlite3.connect(path)) as connection, connection:
        drugs = [one for (one,) in connection.execute("SELECT id FROM drugs_info ORDER BY id")]
        diseases = [one for (one,) in connection.execute("SELECT id FROM disease ORDER BY id")]
        connection.executescript(SCHEMA)
        for n in range(300):
            said = {"医生": f"王{n % 6}", "用法": ["口服", f"每日{1 + n % 3}次"]}
            row = (n, drugs[n * 7 % len(drugs)], diseases[n * 11 % len(diseases)])
            row += (f"2024-{1 + n % 12:02d}-{1 + n % 28:02d}", 1 + n % 5, round(3.5 + n % 17, 2))
            row += (json.dumps(said, ensure_ascii=False),)
            connection.execute("INSERT INTO 处方 VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        orders = [(n, "甲乙丙"[n % 3], "x" * n, n * n) for n in range(20)]
        connection.executemany('INSERT INTO "order" VALUES (?, ?, ?, ?)', orders)
    return path


def answered_alike(database: Path, statement: str) -> None:
    """SQLite's own words where this version of it does not know the statement."""
    result = Sandbox(database).run(statement)
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        try:
            rows = connection.execute(statement).fetchmany(500)
        except sqlite3.OperationalError as error:
            assert result.error == str(error)
            return
    assert result.error is None
    assert list(result.rows) == rows


@pytest.mark.parametrize("statement", [*STATEMENTS.split("\n\n"), "/* 先看 */ SELECT 1 -- 行\n, 2"])
def test_what_an_analyst_writes_is_answered_as_sqlite_answers_it(
    database: Path, statement: str
) -> None:
    answered_alike(database, statement)


def test_mathematics_is_sqlites_where_it_has_them(database: Path) -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        built = {name for (name,) in connection.execute("PRAGMA compile_options")}
    if "ENABLE_MATH_FUNCTIONS" not in built:
        pytest.skip("this SQLite is built without mathematics")
    answered_alike(database, MATHEMATICS)
