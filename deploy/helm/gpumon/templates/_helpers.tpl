{{- define "gpumon.name" -}}
{{ .Values.name }}
{{- end -}}
{{- define "gpumon.labels" -}}
app.kubernetes.io/name: gpumon
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}
{{- define "gpumon.user" -}}
{{- if .Values.podResources.enabled }}0{{ end }}
{{- if not .Values.podResources.enabled }}{{ .Values.user }}{{ end }}
{{- end -}}
