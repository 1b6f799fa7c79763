with

visits as (
    select * from "clinic"."raw"."visits"
),

patients as (
    select * from "clinic"."raw"."patients"
)

select
    patients.region,
    count(*) filter (where visits.ward = 'surgery') as surgery,
    sum(visits.fee) filter (where visits.ward = 'surgery') as surgery_fees,
    count(*) filter (where visits.ward = 'medicine') as medicine,
    sum(visits.fee) filter (where visits.ward = 'medicine') as medicine_fees
    
from visits
join patients on patients.patient_id = visits.patient_id
group by patients.region