SELECT
    region,
    {% for group in ['smokers', 'patients'] -%}
    COUNT(*) {{ 'FILTER (WHERE smoker)' if group == 'smokers' }} AS {{ group }}{{ ',' if not loop.last }}
    {% endfor %}
FROM {{ source('hospital', 'patients') }}
GROUP BY region
