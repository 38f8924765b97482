"""What every report shows, made ready once: `making.view_of` turns a review into words that a
template only has to place."""
