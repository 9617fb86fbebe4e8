{{- define "gpumon.labels" -}}
app.kubernetes.io/name: gpumon
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}
