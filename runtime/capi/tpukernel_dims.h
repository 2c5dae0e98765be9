/* n and d as one axis. */
static inline void tpu_local_shape_5d_to_4d(const dim5 *shape_5d, dim4 *shape_4d)
{
    shape_4d->n = shape_5d->n * shape_5d->d;
    shape_4d->c = shape_5d->c;
    shape_4d->h = shape_5d->h;
    shape_4d->w = shape_5d->w;
}
