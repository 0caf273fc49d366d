variable "image_uri" {
  description = "The function's container image."
  type        = string
}

variable "memory_mb" {
  description = "Memory of one instance, in MB."
  type        = number
  default     = 128
}

variable "url_generation" {
  description = "Raise it to give the function another URL; what calls the old one breaks."
  type        = number
  default     = 1
}

variable "url_path" {
  description = "Path that is appended to the URL; changes an output and no resource."
  type        = string
  default     = "/"
}

variable "broken" {
  description = "Makes the smoke test fail during an apply that changes the function."
  type        = bool
  default     = false
}
