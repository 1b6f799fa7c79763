SELECT SUM(pages) AS pages FROM {{ ref('letters') }}
