{% macro in_period(column) %}{{ column }} >= DATE '{{ var("first_day") }}'{% endmacro %}
