with

visits as (
    select * from {{ source('hospital', 'visits') }}
),

patients as (
    select * from {{ source('hospital', 'patients') }}
)

select
    patients.region,
    {% for ward in ['surgery', 'medicine'] -%}
    count(*) filter (where visits.ward = '{{ ward }}') as {{ ward }},
    sum(visits.fee) filter (where visits.ward = '{{ ward }}') as {{ ward }}_fees{{ ',' if not loop.last }}
    {% endfor %}
from visits
join patients on patients.patient_id = visits.patient_id
group by patients.region
